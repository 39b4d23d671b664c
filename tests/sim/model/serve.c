/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file Replies and events as bytes. The bodies of replies to reads are in
 * reads.c.
 */

enum { LENGTH_FIELD = 4 };

/* ---- frames ------------------------------------------------------------- */

/* Writes the reply into the ensemble's buffer and sends it. If the buffer is
 * too small, it is enlarged and the reply is written again. */
static void send_reply(sim_conn *c, int32_t xid, int64_t zxid, int err,
                       sim_body *body, const void *arg)
{
  sim_ensemble *e = c->server->ensemble;
  lk_writer w;

  for (;;) {
    lk__writer_init(&w, e->frame, e->frame_cap);
    lk__writer_int(&w, 0); /* the length, which is set below */
    lk__writer_int(&w, xid);
    lk__writer_long(&w, zxid);
    lk__writer_int(&w, err);
    if (body != NULL)
      body(&w, arg);
    if (w.len <= e->frame_cap)
      break;
    e->frame_cap = w.len * 2;
    e->frame = realloc(e->frame, e->frame_cap);
  }
  lk__writer_patch(&w, 0, (int32_t)(w.len - LENGTH_FIELD));
  sim_conn_send(c, e->frame, w.len);
}

void sim_serve(sim_conn *c, int32_t xid, int err, sim_body *body,
               const void *arg)
{
  send_reply(c, xid, c->server->tree.zxid, err, body, arg);
}

void sim_serve_without_body(sim_conn *c, int32_t xid, int64_t zxid, int err)
{
  send_reply(c, xid, zxid, err, NULL, NULL);
}

/* ---- events ------------------------------------------------------------- */

enum { SYNC_CONNECTED = 3 }; /* the state in each event */

typedef struct event {
  const char *chroot;
  int32_t type;
  const sim_path *path;
} event;

static void write_event(lk_writer *w, const void *arg)
{
  const event *e = arg;

  lk__writer_int(w, e->type);
  lk__writer_int(w, SYNC_CONNECTED);
  sim_write_path_with_chroot(w, e->chroot,
                             lk_bytes_of(e->path->text, e->path->len));
}

void sim_serve_event(sim_conn *c, int32_t type, const sim_path *p, int64_t zxid)
{
  static const char *const names[] = {"", "created", "deleted", "changed",
                                      "children"};
  event e = {c->chroot, type, p};

  SIM_TRACE(c->server->ensemble->trace, c->server->name,
            "sends %" PRIx64 " event: %s %s", (uint64_t)c->session, names[type],
            p->text);
  send_reply(c, LK_XID_EVENT, zxid, 0, write_event, &e);
}

/* ---- writes ------------------------------------------------------------- */

typedef struct write_reply {
  const char *chroot;
  int32_t op; /* opcode of the request */
  const sim_txn *x;
  const lk_stat *stats;
} write_reply;

static bool is_create(int32_t op)
{
  return op == LK_OPCODE_CREATE || op == LK_OPCODE_CREATE2 ||
         op == LK_OPCODE_CREATE_CONTAINER || op == LK_OPCODE_CREATE_TTL;
}

static void write_path(lk_writer *w, const write_reply *r,
                       const sim_txn_operation *o)
{
  sim_write_path_with_chroot(w, r->chroot,
                             lk_bytes_of(o->path->text, o->path->len));
}

/* Writes the result of one operation of a multi. The creates of containers and
 * of TTL nodes have results of type create2. If the multi failed, all results
 * are errors, which occur twice: in the header and in the body. */
static void write_operation_result(lk_writer *w, const write_reply *r,
                                   size_t index)
{
  const sim_txn_operation *o = &r->x->operations[index];
  bool failed = r->x->err != 0;
  bool replies_with_stat = is_create(o->op) && o->op != LK_OPCODE_CREATE;
  int32_t type = o->op;

  if (failed)
    type = LK_OPCODE_ERROR;
  else if (replies_with_stat)
    type = LK_OPCODE_CREATE2;

  lk__writer_int(w, type);
  lk__writer_bool(w, false); /* done */
  lk__writer_int(w, o->err);
  if (failed)
    lk__writer_int(w, o->err);
  if (type == LK_OPCODE_CREATE || type == LK_OPCODE_CREATE2)
    write_path(w, r, o);
  if (type == LK_OPCODE_CREATE2 || type == LK_OPCODE_SET_DATA)
    lk__writer_stat(w, &r->stats[index]);
}

static void write_multi_results(lk_writer *w, const void *arg)
{
  const write_reply *r = arg;

  for (size_t i = 0; i < r->x->count; i++)
    write_operation_result(w, r, i);
  lk__operation_encode_end(w);
}

static void write_single_result(lk_writer *w, const void *arg)
{
  const write_reply *r = arg;

  if (r->x->count == 0)
    return;
  if (is_create(r->op))
    write_path(w, r, r->x->operations);
  if ((is_create(r->op) && r->op != LK_OPCODE_CREATE) ||
      r->op == LK_OPCODE_SET_DATA || r->op == LK_OPCODE_SET_ACL)
    lk__writer_stat(w, r->stats);
}

void sim_serve_write(sim_conn *c, int32_t xid, int32_t op, const sim_txn *x,
                     const lk_stat *stats)
{
  write_reply r = {c->chroot, op, x, stats};

  if (op == LK_OPCODE_MULTI && x->op == LK_OPCODE_MULTI &&
      x->err != LK_ERR_MARSHALLING)
    sim_serve(c, xid, 0, write_multi_results, &r);
  else if (x->err != 0)
    sim_serve(c, xid, x->err, NULL, NULL);
  else if (op != LK_OPCODE_CHECK) /* a single check gets no reply */
    sim_serve(c, xid, 0, write_single_result, &r);
}
