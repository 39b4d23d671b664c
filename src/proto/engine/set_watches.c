/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/set_watches.h"

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/hosts.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

enum {
  INT_LEN = 4, /* bytes of an int, such as a length field or a count */
  /* Length field, header of two ints, zxid, and the counts of five lists.
   * Without persistent watches there are only three lists. */
  FIXED_BYTES = INT_LEN + 2 * INT_LEN + 8 + 5 * INT_LEN,
  PATHS_LIMIT = 128 * 1024 /* bytes of paths, with their length fields */
};

/* ---- watches that may miss changes --------------------------------------- */

void lk__watches_mark_missing(lk_watches *ws, int64_t zxid)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    lk_watched *on = lk__watched_of_node(n);

    for (int kind = 0; kind < LK_WATCH_KINDS; kind++) {
      if (!lk__list_empty(&on->kinds[kind]) && zxid < on->missing_after[kind])
        on->missing_after[kind] = zxid;
    }
  }
}

static bool is_missing(const lk_watched *on, int kind)
{
  return on->missing_after[kind] != LK_REGISTERED &&
         !lk__list_empty(&on->kinds[kind]);
}

/* ---- watches that are due ------------------------------------------------ */

/* Whether an addWatch for this persistent kind was sent and has no reply. */
static bool is_being_added(const lk_watched *on, lk_watch_kind kind)
{
  return on->pending_count[kind] > on->unsent_count[kind];
}

/* Whether the next setWatches register the watches of `kind`. One-shot watches
 * wait while a persistent watch is being added, since they would replace it. */
static bool is_due(const lk_watched *on, int kind)
{
  return is_missing(on, kind) &&
         (lk__watch_stays((lk_watch_kind)kind) ||
          (!is_being_added(on, LK_WATCH_KIND_PERSISTENT) &&
           !is_being_added(on, LK_WATCH_KIND_RECURSIVE)));
}

/* Forget which watches earlier setWatches had. */
static void reset_asked(lk_watches *ws)
{
  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    lk_watched *on = lk__watched_of_node(n);

    on->last_request = 0;
    memset(on->asked, 0, sizeof on->asked);
  }
}

/* ---- the order of the watches -------------------------------------------- */

/* The smallest zxid above `zxid` of the watches that are due; LK_REGISTERED:
 * none. */
static int64_t next_zxid(const lk_watches *ws, int64_t zxid)
{
  int64_t next = LK_REGISTERED;

  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    const lk_watched *on = lk__watched_of_node(n);

    for (int kind = 0; kind < LK_WATCH_KINDS; kind++) {
      if (is_due(on, kind) && on->missing_after[kind] > zxid &&
          on->missing_after[kind] < next)
        next = on->missing_after[kind];
    }
  }
  return next;
}

/* A walk through the watches that are sent with `zxid`, kind by kind. */
typedef struct cursor {
  int64_t zxid;
  int kind;          /* lk_watch_kind */
  lk_map_node *node; /* a path; NULL: no more of this kind */
} cursor;

static bool cursor_stops_at(const cursor *c, const lk_watched *on)
{
  return is_due(on, c->kind) && on->missing_after[c->kind] == c->zxid;
}

static void cursor_advance(const lk_watches *ws, cursor *c)
{
  while (c->kind < LK_WATCH_KINDS) {
    for (; c->node != NULL; c->node = lk__map_next(c->node)) {
      if (cursor_stops_at(c, lk__watched_of_node(c->node)))
        return;
    }
    c->kind++;
    c->node = lk__map_first(&ws->paths);
  }
}

/* ---- encoding ------------------------------------------------------------ */

/* The number of lists of a request. Servers before 3.6 support only three, so
 * more are sent only for persistent watches. */
static int count_of_lists(const lk_watches *ws)
{
  return ws->added > 0 ? LK_WATCH_KINDS : LK_ONE_SHOT_KINDS;
}

static size_t fixed_len(const lk_watches *ws)
{
  size_t lists_left_out = (size_t)(LK_WATCH_KINDS - count_of_lists(ws));

  return FIXED_BYTES - INT_LEN * lists_left_out;
}

/* The limit for the bytes of paths in one request. */
static size_t paths_limit(const lk_watches *ws, size_t send_limit)
{
  size_t fixed = fixed_len(ws) - INT_LEN; /* the length field does not count */
  size_t rest = send_limit > fixed ? send_limit - fixed : 0;

  return rest < PATHS_LIMIT ? rest : PATHS_LIMIT;
}

/* The callers of the following functions have reserved the bytes. */

/* A writer behind the last byte of `out`. The caller adds its bytes to the
 * buffer. */
static lk_writer writer_at_end(const lk_buf *out)
{
  lk_writer w;

  lk__writer_init(&w, lk__buf_room(out), out->cap - out->end);
  return w;
}

static void append_path(lk_buf *out, const lk_map_node *path)
{
  lk_writer w = writer_at_end(out);

  lk__writer_bytes(&w, lk_bytes_of(path->key, path->len));
  out->end += w.len;
}

static void append_int(lk_buf *out, int32_t v)
{
  lk_writer w = writer_at_end(out);

  lk__writer_int(&w, v);
  out->end += w.len;
}

/* Append the beginning of a setWatches. */
static void append_head(lk_buf *out, int32_t op, int64_t zxid)
{
  lk_writer w = writer_at_end(out);

  lk__writer_int(&w, 0); /* append_request() writes the length here */
  lk__writer_int(&w, LK_XID_SET_WATCHES);
  lk__writer_int(&w, op);
  lk__writer_long(&w, zxid);
  out->end += w.len;
}

static void patch_int(lk_buf *out, size_t offset, size_t v)
{
  lk_writer w;

  lk__writer_init(&w, lk__buf_bytes(out), lk__buf_len(out));
  lk__writer_patch(&w, offset, (int32_t)v);
}

/* Append the list of the paths of `kind`, from the cursor on, up to `*budget`
 * bytes. If the budget is too small for a path, the cursor stays there, and the
 * lists of the kinds behind are empty. false: no memory. */
static bool append_kind(const lk_watches *ws, cursor *c, int kind,
                        uint32_t number, size_t *budget, lk_buf *out)
{
  size_t count_at = lk__buf_len(out), count = 0;

  append_int(out, 0); /* the count is written here below */
  for (cursor_advance(ws, c); c->kind == kind; cursor_advance(ws, c)) {
    lk_watched *on = lk__watched_of_node(c->node);
    size_t need = INT_LEN + c->node->len;

    if (need > *budget)
      break;
    /* FIXED_BYTES has room for the counts of the lists that follow. */
    if (!lk__buf_reserve(out, need + FIXED_BYTES))
      return false;
    append_path(out, c->node);
    *budget -= need;
    on->asked[kind] = true;
    on->last_request = number;
    count++;
    c->node = lk__map_next(c->node);
  }
  patch_int(out, count_at, count);
  return true;
}

/* Append the request with this number, from the cursor on. false: no memory. */
static bool append_request(const lk_watches *ws, cursor *c, uint32_t number,
                           size_t limit, lk_buf *out)
{
  size_t start = lk__buf_len(out);
  size_t first_path = INT_LEN + c->node->len; /* it is sent in any case */
  size_t budget = limit > first_path ? limit : first_path;
  int32_t op = ws->added > 0 ? LK_OPCODE_SET_WATCHES2 : LK_OPCODE_SET_WATCHES;

  if (!lk__buf_reserve(out, FIXED_BYTES))
    return false;
  append_head(out, op, c->zxid);
  for (int kind = 0; kind < count_of_lists(ws); kind++) {
    if (!append_kind(ws, c, kind, number, &budget, out))
      return false;
  }
  patch_int(out, start, lk__buf_len(out) - start - INT_LEN);
  return true;
}

/* Append the requests for all watches that are sent with the cursor's zxid.
 * Returns `count` plus their number; -1: there is no memory. */
static int append_requests(const lk_watches *ws, cursor c, int count,
                           size_t limit, lk_buf *out)
{
  for (cursor_advance(ws, &c); c.kind < LK_WATCH_KINDS;
       cursor_advance(ws, &c)) {
    if (!append_request(ws, &c, (uint32_t)++count, limit, out))
      return -1;
  }
  return count;
}

int lk__set_watches_encode(lk_watches *ws, size_t send_limit, lk_buf *out)
{
  size_t limit = paths_limit(ws, send_limit);
  int64_t zxid = next_zxid(ws, INT64_MIN);
  int count = 0;

  reset_asked(ws);
  for (; zxid != LK_REGISTERED && count >= 0; zxid = next_zxid(ws, zxid)) {
    cursor c = {.zxid = zxid, .node = lk__map_first(&ws->paths)};

    count = append_requests(ws, c, count, limit, out);
  }
  ws->set_watches_under_way = count > 0;
  return count;
}

bool lk__set_watches_send(lk_client *c)
{
  int count = lk__set_watches_encode(&c->watches, c->options.send_limit,
                                     &c->output.bytes);

  if (count < 0)
    return false;
  c->set_watches.sent = c->set_watches.unanswered = (size_t)count;
  c->set_watches.throttled = false;
  return true;
}

/* ---- replies ------------------------------------------------------------- */

/* Let the persistent watches of `kind` get another LK_EVENT_REREGISTERED once
 * they are registered. */
static void mark_reported_too_early(lk_watched *on, int kind)
{
  const lk_link *list = &on->kinds[kind];

  for (lk_link *l = list->next; l != list; l = l->next)
    LK_OWNER(l, lk_watch, link)->reported_too_early = true;
}

/* Returns whether watches of `kind` are still missing. */
static bool acknowledge_kind(lk_watches *ws, lk_watched *on, int kind,
                             uint32_t end)
{
  bool succeeded = on->asked[kind] && on->last_request < end;

  if (succeeded)
    on->missing_after[kind] = LK_REGISTERED;
  if (succeeded && lk__watch_stays((lk_watch_kind)kind))
    lk__watched_end_replaced(ws, on, (lk_watch_kind)kind);
  on->asked[kind] = false;
  if (!is_missing(on, kind))
    return false;
  if (lk__watch_stays((lk_watch_kind)kind))
    mark_reported_too_early(on, kind);
  return true;
}

bool lk__set_watches_acknowledge(lk_watches *ws, uint32_t end)
{
  bool missing = false;

  for (lk_map_node *n = lk__map_first(&ws->paths); n != NULL;
       n = lk__map_next(n)) {
    for (int kind = 0; kind < LK_WATCH_KINDS; kind++)
      missing =
          acknowledge_kind(ws, lk__watched_of_node(n), kind, end) || missing;
  }
  ws->set_watches_under_way = false;
  return missing;
}

/* ---- retries ------------------------------------------------------------- */

void lk__set_watches_retry_later(lk_client *c)
{
  c->set_watches.tries++;
  c->set_watches.retry_ms =
      c->now + lk__hosts_pause_ms(c->session.timeout_ms, c->set_watches.tries,
                                  LK_PAUSE_DOUBLINGS, c->hooks.random,
                                  c->hooks.arg);
  lk__client_wake(c);
}

/* No setWatches was needed: the missing watches were registered by an addWatch,
 * or have ended. */
static void finish_retry(lk_client *c)
{
  if (lk__set_watches_acknowledge(&c->watches, LK_ALL_SET_WATCHES))
    lk__set_watches_retry_later(c);
  lk__watches_notify_reregistered_late(c);
}

bool lk__set_watches_run_retry(lk_client *c)
{
  c->set_watches.retry_ms = LK_NEVER;
  if (c->close.begun)
    return true; /* nothing may be sent behind closeSession */
  if (!lk__set_watches_send(c))
    return false;
  if (c->set_watches.unanswered == 0)
    finish_retry(c);
  lk__client_wake(c);
  return true;
}
