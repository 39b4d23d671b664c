/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/multi.h"
#include "proto/opcode.h"
#include "sim/model.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file
 * Answers: bytes for a client, from this server's tree and from transactions.
 */

/* ---- frames ------------------------------------------------------------- */

/* A frame of at most `room` bytes after its header. */
static lk_writer begin(sim_conn *c, size_t room, int32_t xid, int64_t zxid,
                       int err)
{
  sim_ensemble *e = c->server->ensemble;
  lk_writer w;

  room += 4 + 16;
  if (e->frame_cap < room) {
    e->frame_cap = room * 2;
    e->frame = realloc(e->frame, e->frame_cap);
  }
  lk__writer_init(&w, e->frame, e->frame_cap);
  lk__writer_int(&w, 0);
  lk__writer_int(&w, xid);
  lk__writer_long(&w, zxid);
  lk__writer_int(&w, err);
  return w;
}

static void end(sim_conn *c, lk_writer *w)
{
  lk__writer_patch(w, 0, (int32_t)(w->len - 4));
  sim_conn_send(c, w->buf, w->len);
}

void sim_serve_error(sim_conn *c, int32_t xid, int64_t zxid, int err)
{
  lk_writer w = begin(c, 0, xid, zxid, err);

  end(c, &w);
}

/* Until 3.9 events have no zxid. */
void sim_serve_event(sim_conn *c, int32_t type, const sim_path *p)
{
  static const char *const words[] = {"", "created", "deleted", "changed",
                                      "children"};
  lk_writer w = begin(c, 12 + p->len, LK_XID_EVENT, -1, 0);

  SIM_SAY(c->server->ensemble->trace, c->server->name,
          "tells %" PRIx64 ": %s %s", (uint64_t)c->session, words[type],
          p->text);
  lk__writer_int(&w, type);
  lk__writer_int(&w, 3); /* SyncConnected */
  lk__writer_bytes(&w, lk_bytes_of(p->text, p->len));
  end(c, &w);
}

static void refuse(sim_conn *c, int32_t xid, int err)
{
  sim_serve_error(c, xid, c->server->tree.zxid, err);
}

/* ---- reads -------------------------------------------------------------- */

typedef struct reading {
  sim_conn *c;
  int32_t xid;
  int32_t op;
  lk_bytes path;
  sim_path *at; /* NULL: nobody knows that path */
  bool watch;
} reading;

static void watch(const reading *r, enum sim_watch_kind kind)
{
  if (!r->watch)
    return;
  sim_path *p = r->at;

  if (p == NULL)
    p = sim_path_get(&r->c->server->ensemble->paths, r->path);
  sim_watch_set(r->c, p, kind);
}

static void answer_exists(const reading *r, const sim_node *n)
{
  watch(r, SIM_WATCH_DATA);
  if (n == NULL) {
    refuse(r->c, r->xid, LK_ERR_NO_NODE);
    return;
  }
  lk_writer w = begin(r->c, LK_STAT_SIZE, r->xid, r->c->server->tree.zxid, 0);

  lk__writer_stat(&w, &n->stat);
  end(r->c, &w);
}

static void answer_data(const reading *r, const sim_node *n)
{
  size_t len = (size_t)n->stat.data_length;
  lk_writer w =
      begin(r->c, 4 + len + LK_STAT_SIZE, r->xid, r->c->server->tree.zxid, 0);

  watch(r, SIM_WATCH_DATA);
  lk__writer_bytes(&w, lk_bytes_of(n->has_data ? n->data : NULL, len));
  lk__writer_stat(&w, &n->stat);
  end(r->c, &w);
}

/* Names come in no order; not even in that of their making. */
static size_t shuffle(const sim_node *n, const char **names)
{
  sim_rng r = {(uint64_t)n->stat.pzxid ^ (uint64_t)n->stat.czxid << 32};
  size_t count = 0;

  for (const sim_node *k = n->children; k != NULL; k = k->next) {
    size_t other = sim_roll(&r, (uint32_t)count + 1);

    names[count] = names[other];
    names[other] = k->name;
    count++;
  }
  return count;
}

static void answer_names(const reading *r, const sim_node *n)
{
  sim_ensemble *e = r->c->server->ensemble;
  size_t count = (size_t)n->stat.num_children, room = 4 + LK_STAT_SIZE;
  const char **names =
      lk__arena_take(&e->scratch, count + 1, sizeof(const char *));

  watch(r, SIM_WATCH_CHILD);
  for (const sim_node *k = n->children; k != NULL; k = k->next)
    room += 4 + strlen(k->name);
  lk_writer w = begin(r->c, room, r->xid, r->c->server->tree.zxid, 0);

  shuffle(n, names);
  lk__writer_count(&w, count);
  for (size_t i = 0; i < count; i++)
    lk__writer_bytes(&w, lk_text(names[i]));
  if (r->op == LK_OPCODE_GET_CHILDREN2)
    lk__writer_stat(&w, &n->stat);
  end(r->c, &w);
}

static void answer_acl(const reading *r, const sim_node *n)
{
  lk_writer w = begin(r->c, 4 + 4 + 4 + 5 + 4 + 6 + LK_STAT_SIZE, r->xid,
                      r->c->server->tree.zxid, 0);

  lk__writer_count(&w, 1);
  lk__writer_int(&w, n->perms);
  lk__writer_bytes(&w, lk_text("world"));
  lk__writer_bytes(&w, lk_text("anyone"));
  lk__writer_stat(&w, &n->stat);
  end(r->c, &w);
}

static void answer_path(const reading *r)
{
  const sim_node *n = sim_tree_node(&r->c->server->tree, r->at);
  int32_t perms =
      r->op == LK_OPCODE_GET_ACL ? LK_PERM_READ | LK_PERM_ADMIN : LK_PERM_READ;

  if (r->op == LK_OPCODE_EXISTS)
    answer_exists(r, n);
  else if (n == NULL)
    refuse(r->c, r->xid, LK_ERR_NO_NODE);
  else if ((n->perms & perms) == 0)
    refuse(r->c, r->xid, LK_ERR_NO_AUTH);
  else if (r->op == LK_OPCODE_GET_DATA)
    answer_data(r, n);
  else if (r->op == LK_OPCODE_GET_ACL)
    answer_acl(r, n);
  else
    answer_names(r, n);
}

static void serve_path(sim_conn *c, int32_t xid, int32_t op, lk_reader *in)
{
  reading r = {.c = c, .xid = xid, .op = op, .path = lk__reader_bytes(in)};

  r.watch = op != LK_OPCODE_GET_ACL && lk__reader_bool(in);
  if (in->err != 0 || r.path.at == NULL) {
    refuse(c, xid, LK_ERR_MARSHALLING);
    return;
  }
  if (memchr(r.path.at, '\0', r.path.len) != NULL) {
    refuse(c, xid, LK_ERR_NO_NODE);
    return;
  }
  r.at = sim_path_find(&c->server->ensemble->paths, r.path);
  answer_path(&r);
}

/* ---- watches ------------------------------------------------------------ */

/* A watch that comes back: what it missed, or it stands again. */
static void rearm(sim_conn *c, lk_bytes path, int64_t since, int list)
{
  sim_path *p = sim_path_get(&c->server->ensemble->paths, path);
  const sim_node *n = sim_tree_node(&c->server->tree, p);

  if (list == 1) {
    if (n != NULL)
      sim_serve_event(c, LK_EVENT_CREATED, p);
    else
      sim_watch_set(c, p, SIM_WATCH_DATA);
  } else if (n == NULL)
    sim_serve_event(c, LK_EVENT_DELETED, p);
  else if (list == 0 && n->stat.mzxid > since)
    sim_serve_event(c, LK_EVENT_CHANGED, p);
  else if (list == 2 && n->stat.pzxid > since)
    sim_serve_event(c, LK_EVENT_CHILDREN, p);
  else
    sim_watch_set(c, p, list == 0 ? SIM_WATCH_DATA : SIM_WATCH_CHILD);
}

static void serve_set_watches(sim_conn *c, int32_t xid, lk_reader *in)
{
  lk_arena *scratch = &c->server->ensemble->scratch;
  struct lk_set_watches_request r;

  if (lk__record_decode(&lk__set_watches_request_record, &r, in, scratch) !=
          0 ||
      r.data.items == NULL || r.exist.items == NULL || r.child.items == NULL) {
    refuse(c, xid, LK_ERR_MARSHALLING);
    return;
  }
  const lk_vec *lists[] = {&r.data, &r.exist, &r.child};

  for (int list = 0; list < 3; list++) {
    const lk_bytes *paths = lists[list]->items;

    for (size_t i = 0; i < lists[list]->count; i++)
      rearm(c, paths[i], r.relative_zxid, list);
  }
  refuse(c, xid, 0);
}

/* checkWatches removes nothing; what else it would tell is the same. */
static void serve_remove_watches(sim_conn *c, int32_t xid, int32_t op,
                                 lk_reader *in)
{
  enum { CHILDREN = 1, DATA = 2, ANY = 3 };
  struct lk_path_type_request r;

  if (lk__record_decode(&lk__path_type_request_record, &r, in, NULL) != 0 ||
      r.path.at == NULL || r.type < CHILDREN || r.type > ANY) {
    refuse(c, xid, LK_ERR_MARSHALLING);
    return;
  }
  sim_path *p = sim_path_find(&c->server->ensemble->paths, r.path);
  bool child = r.type != DATA && sim_watch_unset(c, p, SIM_WATCH_CHILD);
  bool data = r.type != CHILDREN && sim_watch_unset(c, p, SIM_WATCH_DATA);

  if (op == LK_OPCODE_CHECK_WATCHES && child)
    sim_watch_set(c, p, SIM_WATCH_CHILD);
  if (op == LK_OPCODE_CHECK_WATCHES && data)
    sim_watch_set(c, p, SIM_WATCH_DATA);
  refuse(c, xid, child || data ? 0 : LK_ERR_NO_WATCHER);
}

/* ---- which answer ------------------------------------------------------- */

void sim_serve_sync(sim_conn *c, int32_t xid, lk_reader *body)
{
  lk_bytes path = lk__reader_bytes(body);

  if (body->err != 0) {
    refuse(c, xid, LK_ERR_MARSHALLING);
    return;
  }
  lk_writer w = begin(c, 4 + path.len, xid, c->server->tree.zxid, 0);

  lk__writer_bytes(&w, path);
  end(c, &w);
}

void sim_serve_read(sim_conn *c, int32_t xid, int32_t op, lk_reader *body)
{
  switch (op) {
  case LK_OPCODE_PING: refuse(c, LK_XID_PING, 0); break;
  case LK_OPCODE_SYNC: sim_serve_sync(c, xid, body); break;
  case LK_OPCODE_SET_WATCHES: serve_set_watches(c, xid, body); break;
  case LK_OPCODE_CHECK_WATCHES:
  case LK_OPCODE_REMOVE_WATCHES: serve_remove_watches(c, xid, op, body); break;
  default: serve_path(c, xid, op, body); break;
  }
  lk__arena_reset(&c->server->ensemble->scratch, 1 << 16);
}

/* ---- writes ------------------------------------------------------------- */

static size_t room_for(const sim_txn *x)
{
  size_t room = 64;

  for (size_t i = 0; i < x->count; i++) {
    room += 9 + 4 + LK_STAT_SIZE;
    room += x->acts[i].path == NULL ? 0 : x->acts[i].path->len;
  }
  return room;
}

static void write_path(lk_writer *w, const sim_act *a)
{
  lk__writer_bytes(w, lk_bytes_of(a->path->text, a->path->len));
}

/* Parts are labelled; this release labels a create2 as a create. */
static void write_part(lk_writer *w, const sim_act *a, const lk_stat *stat,
                       bool failed)
{
  int32_t label = failed                                ? LK_OPCODE_ERROR
                  : a->op == LK_OPCODE_CREATE2          ? LK_OPCODE_CREATE
                  : a->op == LK_OPCODE_CREATE_CONTAINER ? LK_OPCODE_CREATE2
                                                        : a->op;

  lk__writer_int(w, label);
  lk__writer_bool(w, false);
  lk__writer_int(w, a->err);
  if (failed)
    lk__writer_int(w, a->err);
  if (label == LK_OPCODE_CREATE || label == LK_OPCODE_CREATE2)
    write_path(w, a);
  if (label == LK_OPCODE_CREATE2 || label == LK_OPCODE_SET_DATA)
    lk__writer_stat(w, stat);
}

static void write_multi(lk_writer *w, const sim_txn *x, const lk_stat *stats)
{
  for (size_t i = 0; i < x->count; i++)
    write_part(w, &x->acts[i], &stats[i], x->err != 0);
  lk__part_encode_end(w);
}

void sim_serve_write(sim_conn *c, int32_t xid, int32_t op, const sim_txn *x,
                     const lk_stat *stats)
{
  bool whole = op == LK_OPCODE_MULTI && x->op == LK_OPCODE_MULTI &&
               x->err != LK_ERR_MARSHALLING;

  if (x->err != 0 && !whole) {
    refuse(c, xid, x->err);
    return;
  }
  if (op == LK_OPCODE_CHECK)
    return; /* nobody has thought of answering it outside of a multi */
  lk_writer w = begin(c, room_for(x), xid, c->server->tree.zxid, 0);

  if (whole)
    write_multi(&w, x, stats);
  else if (x->count > 0 && (op == LK_OPCODE_CREATE || op == LK_OPCODE_CREATE2 ||
                            op == LK_OPCODE_CREATE_CONTAINER))
    write_path(&w, x->acts);
  if (x->count > 0 &&
      (op == LK_OPCODE_CREATE2 || op == LK_OPCODE_SET_DATA ||
       op == LK_OPCODE_CREATE_CONTAINER || op == LK_OPCODE_SET_ACL))
    lk__writer_stat(&w, stats);
  end(c, &w);
}
