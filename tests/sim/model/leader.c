/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file The leader. It puts the writes in order, counts how many servers have
 * logged each, and pings its followers. A follower's answer to a ping names the
 * sessions whose clients it has heard from.
 */

/* ---- start -------------------------------------------------------------- */

void sim_leader_start(sim_server *s)
{
  s->half_tick = true;
  s->tick = 0;
  s->committed = s->applied;
  sim_server_schedule(s, SIM_TASK_TICK, sim_tick_us(s->ensemble) / 2);
  sim_leader_on_logged(s);
}

static unsigned count_accepted(const sim_server *s)
{
  unsigned count = 1; /* the leader itself */

  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].accepted)
      count++;
  }
  return count;
}

static void send_serve(sim_server *s, unsigned follower)
{
  sim_message m = {.type = SIM_MSG_SERVE, .log_pos = s->committed};

  sim_send(s, follower, &m);
}

/* A quorum has accepted the leader's log, so all of it is committed and the
 * leader starts to serve. */
static void establish(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  int64_t zxid = (int64_t)s->epoch << 32;

  SIM_TRACE(e->trace, s->name, "leads");
  sim_ensemble_commit(e, s, s->log_count);
  s->committed = s->log_count;
  sim_pipeline_commit(s, s->log_count);
  if (e->count == 1) /* a standalone server stays in its epoch */
    zxid = s->tree.zxid;
  s->tree.zxid = zxid;
  s->next_zxid = zxid + 1;
  s->established = true;
  s->serves = true;
  sim_conns_renew_session_ids(s);
  sim_tracker_start(s);
  sim_server_schedule_expiry(s);
  sim_server_schedule(s, SIM_TASK_DELETE_UNUSED, e->config.sweep_ms * SIM_MS);
  for (unsigned i = 0; i < e->count; i++) {
    if (s->followers[i].accepted)
      send_serve(s, i);
  }
}

/* ---- proposals ---------------------------------------------------------- */

static void propose_to(sim_server *s, unsigned follower, size_t log_pos)
{
  sim_message m = {
      .type = SIM_MSG_PROPOSE, .log_pos = log_pos, .txn = s->log[log_pos]};

  sim_send(s, follower, &m);
}

void sim_leader_propose(sim_server *s, const sim_write_request *request,
                        int from)
{
  const sim_txn *x = sim_prepare_txn(s, request, s->next_zxid++, from);

  if (request->op == SIM_OP_CREATE_SESSION) {
    sim_tracker_add(s, request->session, request->timeout_ms, from);
    /* If the client is connected to the leader, the leader tracks the session
     * already, without an owner. */
    sim_tracker_find(s, request->session)->owner = from;
  }
  if (request->op == LK_OPCODE_CLOSE_SESSION) {
    sim_tracked *t = sim_tracker_find(s, request->session);

    if (t != NULL)
      t->closing = true;
  }
  SIM_TRACE(s->ensemble->trace, s->name, "proposes %s %s",
            sim_zxid_text(x->zxid), sim_txn_text(x));
  sim_log_add(s, x);
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].joined)
      propose_to(s, i, s->log_count - 1);
  }
}

/* The position in the log up to which a quorum has logged. */
static size_t quorum_logged(const sim_server *s)
{
  for (size_t log_pos = s->logged; log_pos > s->committed; log_pos--) {
    unsigned have_logged = 1; /* the leader itself */

    for (unsigned i = 0; i < s->ensemble->count; i++) {
      if (s->followers[i].accepted && s->followers[i].acked >= log_pos)
        have_logged++;
    }
    if (have_logged >= sim_quorum(s->ensemble))
      return log_pos;
  }
  return s->committed;
}

static void answer_syncs(sim_server *s)
{
  size_t nanswered = 0;

  while (nanswered < s->nsyncs && s->syncs[nanswered].log_pos <= s->committed) {
    const sim_pending_sync *p = &s->syncs[nanswered++];
    sim_message m = {
        .type = SIM_MSG_SYNCED, .session = p->session, .xid = p->xid};

    sim_send(s, p->server, &m);
  }
  if (nanswered == 0)
    return;
  s->nsyncs -= nanswered;
  memmove(s->syncs, s->syncs + nanswered, s->nsyncs * sizeof *s->syncs);
}

static void send_commit(sim_server *s, size_t log_pos)
{
  sim_message m = {.type = SIM_MSG_COMMIT, .log_pos = log_pos};

  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].accepted)
      sim_send(s, i, &m);
  }
}

/* Commits what a quorum has logged. The reply to a sync must be sent after the
 * commits before it and ahead of the commits after it, so the commits are done
 * in steps. */
static void commit(sim_server *s)
{
  size_t end = quorum_logged(s);

  while (s->committed < end) {
    size_t next = end;

    if (s->nsyncs > 0 && s->syncs[0].log_pos < next)
      next = s->syncs[0].log_pos;
    sim_ensemble_commit(s->ensemble, s, next);
    s->committed = next;
    send_commit(s, next);
    answer_syncs(s);
    sim_pipeline_commit(s, next);
  }
}

void sim_leader_on_logged(sim_server *s)
{
  if (!s->established && count_accepted(s) >= sim_quorum(s->ensemble))
    establish(s);
  if (s->established)
    commit(s);
}

void sim_leader_receive_sync(sim_server *s, unsigned from, int64_t session,
                             int32_t xid)
{
  if (s->nsyncs == s->syncs_cap) {
    s->syncs_cap = s->syncs_cap == 0 ? 16 : s->syncs_cap * 2;
    s->syncs = realloc(s->syncs, s->syncs_cap * sizeof *s->syncs);
  }
  s->syncs[s->nsyncs++] = (sim_pending_sync){from, session, xid, s->log_count};
  answer_syncs(s);
}

/* ---- followers ---------------------------------------------------------- */

/* The position up to which the logs of two servers are equal. */
static size_t common_prefix(const sim_server *a, const sim_server *b)
{
  size_t log_pos = a->log_count < b->log_count ? a->log_count : b->log_count;

  while (log_pos > 0 && a->log[log_pos - 1] != b->log[log_pos - 1])
    log_pos--;
  return log_pos;
}

/* Sends the follower the transactions that it lacks. From now on it receives
 * all proposals. */
static void synchronise_follower(sim_server *s, unsigned from)
{
  size_t log_pos = common_prefix(s, &s->ensemble->servers[from]);
  sim_message m = {.type = SIM_MSG_TRUNCATE, .log_pos = log_pos};

  s->followers[from] = (sim_follower){
      .joined = true, .until_tick = s->followers[from].until_tick};
  sim_send(s, from, &m);
  for (; log_pos < s->log_count; log_pos++)
    propose_to(s, from, log_pos);
  m = (sim_message){.type = SIM_MSG_NEW_LEADER, .epoch = s->epoch};
  sim_send(s, from, &m);
}

static void receive_accept(sim_server *s, unsigned from, size_t log_pos)
{
  s->followers[from].accepted = true;
  s->followers[from].acked = log_pos;
  if (s->established)
    send_serve(s, from);
  sim_leader_on_logged(s);
}

static void revalidate_session(sim_server *s, unsigned from,
                               const sim_message *m)
{
  bool valid =
      s->established && sim_tracker_resume(s, m->session, m->timeout_ms, from);
  sim_message answer = {
      .type = SIM_MSG_VALID, .session = m->session, .valid = valid};

  sim_send(s, from, &answer);
}

void sim_leader_drop_follower(sim_server *s, unsigned follower)
{
  s->followers[follower] = (sim_follower){0};
}

void sim_leader_receive(sim_server *s, unsigned from, const sim_message *m)
{
  s->followers[from].until_tick = s->tick + s->ensemble->config.sync_limit;
  switch (m->type) {
  case SIM_MSG_JOIN: synchronise_follower(s, from); break;
  case SIM_MSG_ACCEPT: receive_accept(s, from, m->log_pos); break;
  case SIM_MSG_ACK:
    s->followers[from].acked = m->log_pos;
    sim_leader_on_logged(s);
    break;
  case SIM_MSG_REQUEST:
    sim_pipeline_receive_forwarded(s, m->request, (int)from);
    break;
  case SIM_MSG_SYNC:
    sim_leader_receive_sync(s, from, m->session, m->xid);
    break;
  case SIM_MSG_REVALIDATE: revalidate_session(s, from, m); break;
  case SIM_MSG_TOUCH: sim_tracker_touch(s, m->session, m->timeout_ms); break;
  case SIM_MSG_BYE: sim_leader_drop_follower(s, from); break;
  case SIM_MSG_PONG:
  case SIM_MSG_TRUNCATE:
  case SIM_MSG_PROPOSE:
  case SIM_MSG_NEW_LEADER:
  case SIM_MSG_SERVE:
  case SIM_MSG_COMMIT:
  case SIM_MSG_PING:
  case SIM_MSG_VALID:
  case SIM_MSG_SYNCED: break;
  }
}

/* ---- timers ------------------------------------------------------------- */

/* Whether too few followers have been heard from. After an election, followers
 * have sync_limit ticks to join. */
static bool has_lost_quorum(const sim_server *s)
{
  bool may_still_join =
      !s->established && s->tick <= s->ensemble->config.sync_limit;
  unsigned count = 1; /* the leader itself */

  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].joined && s->followers[i].until_tick >= s->tick)
      count++;
  }
  return !may_still_join && count < sim_quorum(s->ensemble);
}

/* Pings a follower, or disconnects it if it was not heard for sync_limit
 * ticks. */
static void ping_or_disconnect(sim_server *s, unsigned follower)
{
  sim_message m = {.type = SIM_MSG_PING};

  if (s->followers[follower].until_tick >= s->tick) {
    sim_send(s, follower, &m);
    return;
  }
  sim_leader_drop_follower(s, follower);
  sim_close_channel(s, follower);
}

/* Runs twice a tick and pings the followers each time. Once a tick it checks
 * that there are enough of them. */
void sim_leader_tick(sim_server *s)
{
  bool whole_tick = !s->half_tick;

  s->half_tick = whole_tick;
  if (whole_tick) {
    s->tick++;
    if (has_lost_quorum(s)) {
      sim_enter_looking(s, "has lost its followers");
      return;
    }
  }
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].joined)
      ping_or_disconnect(s, i);
  }
  sim_server_schedule(s, SIM_TASK_TICK, sim_tick_us(s->ensemble) / 2);
}

/* Whether the leader deletes the node by itself: an empty container that has
 * had a child, or a node whose data were not set for its TTL. */
static bool is_deletable(const sim_server *s, const sim_node *n)
{
  const sim_ensemble *e = s->ensemble;
  int64_t now_ms = e->config.wall_clock_start_ms + e->agenda->now_us / SIM_MS;

  if (n->children != NULL)
    return false;
  return (n->container && n->counter > 0) ||
         (n->ttl_ms > 0 && now_ms - n->stat.mtime > n->ttl_ms);
}

/* Deletes the unused nodes among `n` and all nodes below it. */
static void delete_unused_from(sim_server *s, const sim_node *n)
{
  for (const sim_node *child = n->children; child != NULL; child = child->next)
    delete_unused_from(s, child);
  if (!is_deletable(s, n))
    return;
  sim_operation operation = {.path = lk_text(n->path), .version = -1};

  sim_pipeline_submit(s, NULL,
                      sim_write_request_new(SIM_ENSEMBLE_SESSION,
                                            SIM_OP_DELETE_CONTAINER, &operation,
                                            &s->ensemble->arena));
}

void sim_leader_delete_unused(sim_server *s)
{
  delete_unused_from(s, s->tree.root);
  sim_server_schedule(s, SIM_TASK_DELETE_UNUSED,
                      s->ensemble->config.sweep_ms * SIM_MS);
}
