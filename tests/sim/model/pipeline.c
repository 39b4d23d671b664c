/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/read_only.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file The order of requests in a server. Requests of a session are answered
 * in order, so reads behind a write wait for its commit. A committed write is
 * taken for the oldest write that waits for a commit, if session and xid are
 * equal. Nothing else is compared: a client that uses an xid twice receives the
 * reply to the older request. A leader also keeps the writes that followers
 * forwarded.
 */

/* The zxid in the reply to an unknown opcode. */
enum { NO_ZXID = -1 };

/* ---- queues ------------------------------------------------------------- */

static sim_queue *queue_of(sim_pipeline *p, int64_t session)
{
  for (size_t i = 0; i < p->count; i++) {
    if (p->queues[i].session == session)
      return &p->queues[i];
  }
  return NULL;
}

static sim_waiting_request *new_waiting_request(sim_server *s, sim_conn *c,
                                                int64_t session, int32_t xid,
                                                int32_t op)
{
  sim_pipeline *p = &s->pipeline;
  sim_waiting_request *r = p->spare;

  if (r == NULL)
    r = calloc(1, sizeof *r);
  else
    p->spare = r->next;
  *r = (sim_waiting_request){.conn = c,
                             .session = session,
                             .xid = xid,
                             .op = op,
                             .body = r->body,
                             .cap = r->cap};
  return r;
}

static void copy_body(sim_waiting_request *r, const lk_reader *body)
{
  r->len = lk__reader_left(body);
  if (r->len > r->cap) {
    r->cap = r->len * 2;
    r->body = realloc(r->body, r->cap);
  }
  if (r->len > 0)
    memcpy(r->body, body->at, r->len);
}

static void append_to_queue(sim_pipeline *p, sim_waiting_request *r)
{
  sim_queue *q = queue_of(p, r->session);

  if (q == NULL) {
    if (p->count == p->cap) {
      p->cap = p->cap == 0 ? 16 : p->cap * 2;
      p->queues = realloc(p->queues, p->cap * sizeof *p->queues);
    }
    q = &p->queues[p->count++];
    *q = (sim_queue){.session = r->session};
  }
  if (q->first == NULL)
    q->first = r;
  else
    q->last->next = r;
  q->last = r;
  if (!r->awaits_commit)
    return;
  if (p->first_write == NULL)
    p->first_write = r;
  else
    p->last_write->next_write = r;
  p->last_write = r;
}

/* Removes the first request of a session from its queue, and the queue if it is
 * empty then. */
static sim_waiting_request *remove_first(sim_pipeline *p, sim_queue *q)
{
  sim_waiting_request *r = q->first;

  q->first = r->next;
  if (q->first == NULL)
    *q = p->queues[--p->count];
  return r;
}

static void recycle_request(sim_pipeline *p, sim_waiting_request *r)
{
  r->next = p->spare;
  p->spare = r;
}

/* ---- receiving ---------------------------------------------------------- */

/* Notes that the client was heard from. false: the session is ending, and the
 * request must be dropped. */
static bool touch_session(sim_conn *c)
{
  sim_server *s = c->server;

  if (s->role == SIM_LEADING)
    return sim_tracker_touch(s, c->session, c->timeout_ms);
  sim_follower_add_touch(s, c->session, c->timeout_ms);
  return true;
}

/* Answers a request that waits for nothing. */
static void reply(sim_conn *c, int32_t xid, int32_t op, lk_reader *body,
                  int32_t refusal)
{
  if (refusal != 0)
    sim_serve_without_body(c, xid, c->server->tree.zxid, refusal);
  else
    sim_serve_read(c, xid, op, body);
}

/* Answers a request, or queues it behind the requests of the session that wait.
 */
static void reply_in_order(sim_conn *c, int32_t xid, int32_t op,
                           lk_reader *body, int32_t refusal)
{
  sim_server *s = c->server;

  if (queue_of(&s->pipeline, c->session) == NULL) {
    reply(c, xid, op, body, refusal);
    return;
  }
  sim_waiting_request *r = new_waiting_request(s, c, c->session, xid, op);

  r->refusal = refusal;
  copy_body(r, body);
  append_to_queue(&s->pipeline, r);
}

static void receive_read(sim_conn *c, int32_t xid, int32_t op, lk_reader *body)
{
  sim_server *s = c->server;
  const int32_t no_refusal = 0;

  /* If the session has moved to another server, a leader closes the connection;
   * a follower does not. */
  if (s->role == SIM_LEADING &&
      sim_tracker_check(s, c->session, (int)s->index) == LK_ERR_SESSION_MOVED)
    sim_conn_hang_up(c);
  else
    reply_in_order(c, xid, op, body, no_refusal);
}

static void receive_sync(sim_conn *c, int32_t xid, lk_reader *body)
{
  sim_server *s = c->server;
  sim_waiting_request *r =
      new_waiting_request(s, c, c->session, xid, LK_OPCODE_SYNC);
  sim_message m = {.type = SIM_MSG_SYNC, .session = c->session, .xid = xid};

  r->awaits_commit = true;
  copy_body(r, body);
  append_to_queue(&s->pipeline, r);
  sim_send(s, s->leader, &m);
}

/* The opcodes that sim_server_set_older() removes. Locks work without them. */
static bool is_unknown_to_older_servers(int32_t op)
{
  return op == LK_OPCODE_MULTI_READ || op == LK_OPCODE_REMOVE_WATCHES ||
         op == LK_OPCODE_GET_EPHEMERALS || op == LK_OPCODE_WHO_AM_I ||
         op == LK_OPCODE_GET_ALL_CHILDREN_NUMBER;
}

static bool opcode_is_supported(const sim_server *s, int32_t op)
{
  if (!server_changes_have_opcode(s->has, op))
    return false;
  if (s->older && is_unknown_to_older_servers(op))
    return false;
  switch (op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_DELETE:
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_GET_DATA:
  case LK_OPCODE_SET_DATA:
  case LK_OPCODE_GET_ACL:
  case LK_OPCODE_SET_ACL:
  case LK_OPCODE_GET_CHILDREN:
  case LK_OPCODE_SYNC:
  case LK_OPCODE_PING:
  case LK_OPCODE_GET_CHILDREN2:
  case LK_OPCODE_CHECK:
  case LK_OPCODE_MULTI:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_RECONFIG:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
  case LK_OPCODE_CHECK_WATCHES:
  case LK_OPCODE_REMOVE_WATCHES:
  case LK_OPCODE_MULTI_READ:
  case LK_OPCODE_SET_WATCHES:
  case LK_OPCODE_SET_WATCHES2:
  case LK_OPCODE_ADD_WATCH:
  case LK_OPCODE_GET_EPHEMERALS:
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
  case LK_OPCODE_WHO_AM_I:
  case LK_OPCODE_CLOSE_SESSION: return true;
  default: return false;
  }
}

static bool is_refused_by_chance(sim_server *s, unsigned *left, int32_t op)
{
  if (*left == 0 || op == LK_OPCODE_PING || op == LK_OPCODE_CLOSE_SESSION)
    return false;
  (*left)--;
  return sim_roll(&s->rng, 2) == 0;
}

/* The error with which a fault lets the server refuse the request; 0: it is
 * served. */
static int32_t take_refusal(sim_server *s, int32_t op)
{
  sim_pipeline *p = &s->pipeline;

  if (p->throttle_watches > 0 &&
      (op == LK_OPCODE_SET_WATCHES || op == LK_OPCODE_SET_WATCHES2)) {
    p->throttle_watches--;
    return LK_ERR_THROTTLED;
  }
  if (is_refused_by_chance(s, &p->throttle, op))
    return LK_ERR_THROTTLED;
  return is_refused_by_chance(s, &p->errors, op) ? p->error : 0;
}

/* Whether a server that refuses a write with this error has perhaps forwarded
 * it to the leader before. */
static bool may_be_forwarded(sim_server *s, int32_t op, int32_t refusal)
{
  bool timed_out =
      refusal == LK_ERR_OPERATION_TIMEOUT || refusal == LK_ERR_REQUEST_TIMEOUT;

  return timed_out && lk__opcode_info(op)->write && sim_roll(&s->rng, 2) == 0;
}

static void submit(sim_conn *awaits, sim_conn *c, int32_t xid, int32_t op,
                   lk_reader *body)
{
  sim_ensemble *e = c->server->ensemble;

  sim_pipeline_submit(
      c->server, awaits,
      sim_write_request_read(c->session, c->ids, c->chroot, xid, op, body,
                             c->server->has[SERVER_STAT_OF_CREATE_IN_MULTI],
                             &e->arena, &e->scratch));
}

/* Refuses a request in its turn, also a write. */
static void refuse(sim_conn *c, int32_t xid, int32_t op, lk_reader *body,
                   int32_t refusal)
{
  sim_conn *const nobody = NULL;
  lk_reader write = *body;
  bool forwarded = may_be_forwarded(c->server, op, refusal);

  reply_in_order(c, xid, op, body, refusal);
  if (forwarded)
    submit(nobody, c, xid, op, &write);
}

void sim_pipeline_receive(sim_conn *c, int32_t xid, int32_t op, lk_reader *body)
{
  sim_server *s = c->server;
  int32_t refusal;

  if (!s->read_only && !touch_session(c))
    return;
  if (!opcode_is_supported(s, op)) {
    sim_serve_without_body(c, xid, NO_ZXID, LK_ERR_UNIMPLEMENTED);
    sim_conn_hang_up(c);
    return;
  }
  if (s->read_only)
    sim_read_only_receive(c, xid, op, body);
  else if ((refusal = take_refusal(s, op)) != 0)
    refuse(c, xid, op, body, refusal);
  else if (op == LK_OPCODE_SYNC && s->role == SIM_FOLLOWING)
    receive_sync(c, xid, body);
  else if (lk__opcode_info(op)->write)
    submit(c, c, xid, op, body);
  else
    receive_read(c, xid, op, body);
}

static void queue_until_commit(sim_server *s, sim_conn *c,
                               const sim_write_request *request)
{
  sim_waiting_request *r =
      new_waiting_request(s, c, request->session, request->xid, request->op);

  r->awaits_commit = true;
  append_to_queue(&s->pipeline, r);
}

void sim_pipeline_submit(sim_server *s, sim_conn *c,
                         const sim_write_request *request)
{
  queue_until_commit(s, c, request);
  if (s->role == SIM_LEADING) {
    sim_leader_propose(s, request, (int)s->index);
    return;
  }
  sim_message m = {.type = SIM_MSG_REQUEST, .request = request};

  sim_send(s, s->leader, &m);
}

void sim_pipeline_receive_forwarded(sim_server *s,
                                    const sim_write_request *request, int from)
{
  queue_until_commit(s, NULL, request);
  sim_leader_propose(s, request, from);
}

/* ---- commits ------------------------------------------------------------ */

/* Answers the requests behind a write that is complete, up to the next one that
 * waits for a commit. */
static void reply_to_reads_behind(sim_server *s, int64_t session)
{
  sim_pipeline *p = &s->pipeline;
  sim_queue *q;

  while ((q = queue_of(p, session)) != NULL && !q->first->awaits_commit) {
    sim_waiting_request *r = remove_first(p, q);
    lk_reader body;

    lk__reader_init(&body, r->body, r->len);
    if (r->conn != NULL)
      reply(r->conn, r->xid, r->op, &body, r->refusal);
    recycle_request(p, r);
  }
}

/* Removes the request that waits for this transaction and returns it; NULL:
 * another server received the request. */
static sim_waiting_request *take_awaited_request(sim_pipeline *p,
                                                 int64_t session, int32_t xid)
{
  sim_waiting_request *r = p->first_write;

  if (r == NULL || r->session != session || r->xid != xid)
    return NULL;
  sim_queue *q = queue_of(p, session);

  if (q == NULL)
    abort();
  p->first_write = r->next_write;
  return remove_first(p, q);
}

static void reply_to_write(sim_conn *c, const sim_waiting_request *r,
                           const sim_txn *x, const lk_stat *stats)
{
  bool session_moved = x->err == LK_ERR_SESSION_MOVED && !x->moved_in_results;

  if (r->op == SIM_OP_CREATE_SESSION) {
    sim_conn_accept_session(c);
    return;
  }
  if (!session_moved)
    sim_serve_write(c, r->xid, r->op, x, stats);
  if (session_moved || r->op == LK_OPCODE_CLOSE_SESSION)
    sim_conn_hang_up(c);
}

static void send_created_events(const sim_node *n, void *arg)
{
  sim_watches_created(arg, n);
}

static void send_deleted_events(const sim_node *n, int64_t zxid, void *arg)
{
  (void)zxid;
  sim_watches_deleted(arg, n);
}

static void send_data_set_events(const sim_node *n, void *arg)
{
  sim_watches_data_set(arg, n);
}

/* Room for the stats of a transaction with `count` operations. */
static lk_stat *stats_for(sim_ensemble *e, size_t count)
{
  if (e->stats_cap < count + 1) {
    e->stats_cap = (count + 1) * 2;
    e->stats = realloc(e->stats, e->stats_cap * sizeof *e->stats);
  }
  return e->stats;
}

static void commit(sim_server *s, const sim_txn *x)
{
  const sim_txn_hooks hooks = {.created = send_created_events,
                               .deleted = send_deleted_events,
                               .data_set = send_data_set_events,
                               .arg = s};
  lk_stat *stats = stats_for(s->ensemble, x->count);
  sim_waiting_request *r =
      take_awaited_request(&s->pipeline, x->session, x->xid);

  sim_txn_apply(x, &s->tree, &hooks, stats);
  if (s->role == SIM_LEADING)
    sim_outstanding_forget(&s->outstanding, x->zxid);
  if (s->role == SIM_LEADING && x->op == LK_OPCODE_CLOSE_SESSION)
    sim_tracker_remove(s, x->session);
  if (r != NULL && r->conn != NULL)
    reply_to_write(r->conn, r, x, stats);
  else if (x->op == LK_OPCODE_CLOSE_SESSION) {
    /* The session expired, or its client asked another server to close it. */
    sim_conn *c = sim_conn_of_session(s, x->session);

    if (c != NULL)
      sim_conn_hang_up(c);
  }
  if (r == NULL)
    return;
  recycle_request(&s->pipeline, r);
  reply_to_reads_behind(s, x->session);
}

void sim_pipeline_commit(sim_server *s, size_t end)
{
  while (s->applied < end)
    commit(s, s->log[s->applied++]);
}

void sim_pipeline_complete_sync(sim_server *s, int64_t session, int32_t xid)
{
  sim_waiting_request *r = take_awaited_request(&s->pipeline, session, xid);
  lk_reader body;

  if (r == NULL)
    return;
  lk__reader_init(&body, r->body, r->len);
  if (r->conn != NULL)
    sim_serve_sync(r->conn, xid, &body);
  recycle_request(&s->pipeline, r);
  reply_to_reads_behind(s, session);
}

/* ---- connections and memory --------------------------------------------- */

void sim_pipeline_forget_conn(sim_pipeline *p, const sim_conn *c)
{
  for (size_t i = 0; i < p->count; i++) {
    for (sim_waiting_request *r = p->queues[i].first; r != NULL; r = r->next) {
      if (r->conn == c)
        r->conn = NULL;
    }
  }
}

void sim_pipeline_drop(sim_pipeline *p)
{
  while (p->count > 0)
    recycle_request(p, remove_first(p, &p->queues[0]));
  p->first_write = NULL;
}

void sim_pipeline_free(sim_pipeline *p)
{
  sim_pipeline_drop(p);
  while (p->spare != NULL) {
    sim_waiting_request *r = p->spare;

    p->spare = r->next;
    free(r->body);
    free(r);
  }
  free(p->queues);
}
