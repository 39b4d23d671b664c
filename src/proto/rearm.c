/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "proto/opcode.h"
#include "proto/rearm.h"

enum {
  FIXED = 4 + 8 + 8 + 5 * 4, /* length, header, zxid, counts; two less where no
                                watch stays */
  PATHS_LIMIT = 128 * 1024   /* bytes, with their lengths */
};

/* Walks all (kind, path) pairs, kind by kind; or again those of children where
 * a recursive watch, set after them, has taken their place (before 3.9). */
typedef struct cursor {
  int kind;
  lk_map_node *node;
  bool again;
} cursor;

static bool stops_at(const cursor *c, const lk_watched *on)
{
  if (c->again && (c->kind != LK_WATCH_CHILD ||
                   lk__list_empty(&on->kinds[LK_WATCH_RECURSIVE])))
    return false;
  return !lk__list_empty(&on->kinds[c->kind]);
}

static void settle(const lk_watches *ws, cursor *c)
{
  while (c->kind < LK_WATCH_NKINDS) {
    for (; c->node != NULL; c->node = lk__map_next(c->node)) {
      if (stops_at(c, (lk_watched *)(void *)c->node))
        return;
    }
    c->kind++;
    c->node = lk__map_first(&ws->paths);
  }
}

/* How many lists a request has: servers before 3.6 know only three, and hear
 * no more where that is enough. */
static int lists_of(const lk_watches *ws)
{
  return ws->added > 0 ? LK_WATCH_NKINDS : LK_WATCH_ADDED;
}

static size_t fixed_of(const lk_watches *ws)
{
  return FIXED - 4 * (size_t)(LK_WATCH_NKINDS - lists_of(ws));
}

/* Its bytes are reserved. */
static void put(lk_buf *out, void (*write)(lk_writer *w, const void *v),
                const void *v)
{
  lk_writer w;

  lk__writer_init(&w, lk__buf_room(out), out->cap - out->end);
  write(&w, v);
  out->end += w.len;
}

static void put_path(lk_writer *w, const void *v)
{
  const lk_map_node *node = v;

  lk__writer_bytes(w, lk_bytes_of(node->key, node->len));
}

typedef struct head {
  int32_t op;
  int64_t zxid;
} head;

static void put_head(lk_writer *w, const void *v)
{
  const head *h = v;

  lk__writer_int(w, 0);
  lk__writer_int(w, LK_XID_SET_WATCHES);
  lk__writer_int(w, h->op);
  lk__writer_long(w, h->zxid);
}

static void put_zero(lk_writer *w, const void *v)
{
  (void)v;
  lk__writer_int(w, 0);
}

static void patch(lk_buf *out, size_t offset, size_t v)
{
  lk_writer w;

  lk__writer_init(&w, lk__buf_bytes(out), lk__buf_len(out));
  lk__writer_patch(&w, offset, (int32_t)v);
}

/* The paths of one kind from the cursor on, as far as `budget` goes. When it
 * is used up the cursor stays, and the kinds behind get nothing. */
static bool put_kind(const lk_watches *ws, cursor *c, int kind, size_t *budget,
                     lk_buf *out)
{
  size_t count_at = lk__buf_len(out), count = 0;

  put(out, put_zero, NULL);
  for (settle(ws, c); c->kind == kind; settle(ws, c)) {
    size_t need = 4 + c->node->len;

    if (need > *budget)
      break;
    /* what follows in any case: the counts of the kinds behind this one */
    if (!lk__buf_reserve(out, need + FIXED))
      return false;
    put(out, put_path, c->node);
    *budget -= need;
    count++;
    c->node = lk__map_next(c->node);
  }
  patch(out, count_at, count);
  return true;
}

static bool put_chunk(const lk_watches *ws, cursor *c, int64_t zxid,
                      size_t limit, lk_buf *out)
{
  size_t start = lk__buf_len(out);
  size_t first = 4 + c->node->len;
  size_t budget = limit > first ? limit : first;
  head h = {ws->added > 0 ? LK_OPCODE_SET_WATCHES2 : LK_OPCODE_SET_WATCHES,
            zxid};

  if (!lk__buf_reserve(out, FIXED))
    return false;
  put(out, put_head, &h);
  for (int kind = 0; kind < lists_of(ws); kind++) {
    if (!put_kind(ws, c, kind, &budget, out))
      return false;
  }
  patch(out, start, lk__buf_len(out) - start - 4);
  return true;
}

/* Bytes of paths in one request. */
static size_t paths_limit(const lk_watches *ws, size_t send_limit)
{
  size_t fixed = fixed_of(ws) - 4;
  size_t rest = send_limit > fixed ? send_limit - fixed : 0;

  return rest < PATHS_LIMIT ? rest : PATHS_LIMIT;
}

int lk__rearm_encode(const lk_watches *ws, int64_t relative_zxid,
                     size_t send_limit, lk_buf *out)
{
  size_t limit = paths_limit(ws, send_limit);
  int count = 0;

  for (int pass = 0; pass < (ws->recursive > 0 ? 2 : 1); pass++) {
    cursor c = {0, lk__map_first(&ws->paths), pass > 0};

    for (settle(ws, &c); c.kind < LK_WATCH_NKINDS; settle(ws, &c)) {
      if (!put_chunk(ws, &c, relative_zxid, limit, out))
        return -1;
      count++;
    }
  }
  return count;
}
