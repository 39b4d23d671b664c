/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file
 * The leader: it orders what is asked for, counts who has logged it, and pings
 * its followers, who tell it then whom they have heard.
 */

/* ---- becoming one ------------------------------------------------------- */

void sim_lead(sim_server *s)
{
  s->half = true;
  s->tick = 0;
  s->committed = s->applied;
  sim_server_do(s, SIM_DUTY_TICK, sim_tick_us(s->ensemble) / 2);
  sim_lead_logged(s);
}

static unsigned count_accepted(const sim_server *s)
{
  unsigned count = 1;

  for (unsigned i = 0; i < s->ensemble->count; i++)
    count += s->followers[i].accepted;
  return count;
}

static void let_serve(sim_server *s, unsigned follower)
{
  sim_message m = {.type = SIM_MSG_SERVE, .place = s->committed};

  sim_send(s, follower, &m);
}

/* A quorum has all that was logged here: it is committed now. */
static void establish(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  int64_t tick = e->config.tick_ms;
  int64_t zxid = (int64_t)s->epoch << 32;

  SIM_SAY(e->trace, s->name, "leads");
  sim_ensemble_commit(e, s, s->count);
  s->committed = s->count;
  sim_pipeline_commit(s, s->count);
  if (e->count == 1)
    zxid = s->tree.zxid;
  s->tree.zxid = zxid;
  s->next_zxid = zxid + 1;
  s->established = true;
  s->serves = true;
  if (s->last_session < e->agenda->now_us)
    s->last_session = e->agenda->now_us;
  sim_tracker_start(s);
  sim_server_do(s, SIM_DUTY_EXPIRE,
                (tick - sim_server_now_ms(s) % tick) * SIM_MS);
  sim_server_do(s, SIM_DUTY_SWEEP, e->config.sweep_ms * SIM_MS);
  for (unsigned i = 0; i < e->count; i++) {
    if (s->followers[i].accepted)
      let_serve(s, i);
  }
}

/* ---- proposals ---------------------------------------------------------- */

static void propose_to(sim_server *s, unsigned follower, size_t place)
{
  sim_message m = {
      .type = SIM_MSG_PROPOSE, .place = place, .txn = s->log[place]};

  sim_send(s, follower, &m);
}

void sim_lead_propose(sim_server *s, const sim_write_request *ask, int from)
{
  if (ask->op == SIM_OP_CREATE_SESSION)
    sim_tracker_add(s, ask->session, ask->timeout_ms, from);
  const sim_txn *x = sim_outstanding_decide(s, ask, s->next_zxid++, from);

  if (ask->op == SIM_OP_CREATE_SESSION)
    sim_tracker_find(s, ask->session)->owner = from;
  if (ask->op == LK_OPCODE_CLOSE_SESSION) {
    sim_tracked *t = sim_tracker_find(s, ask->session);

    if (t != NULL)
      t->closing = true;
  }
  SIM_SAY(s->ensemble->trace, s->name, "proposes %s %s", sim_zxid(x->zxid),
          sim_txn_words(x));
  sim_log_add(s, x);
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].joined)
      propose_to(s, i, s->count - 1);
  }
}

/* How far a quorum has logged. */
static size_t agreed(const sim_server *s)
{
  size_t best = s->committed;

  for (size_t place = s->logged; place > best; place--) {
    unsigned have = 1;

    for (unsigned i = 0; i < s->ensemble->count; i++)
      have += s->followers[i].accepted && s->followers[i].acked >= place;
    if (have >= sim_quorum(s->ensemble))
      return place;
  }
  return best;
}

static void answer_syncs(sim_server *s)
{
  size_t done = 0;

  while (done < s->nsyncs && s->syncs[done].place <= s->committed) {
    const sim_pending_sync *p = &s->syncs[done++];
    sim_message m = {
        .type = SIM_MSG_SYNCED, .session = p->session, .xid = p->xid};

    sim_send(s, p->server, &m);
  }
  if (done == 0)
    return;
  s->nsyncs -= done;
  memmove(s->syncs, s->syncs + done, s->nsyncs * sizeof *s->syncs);
}

static void tell_commit(sim_server *s, size_t place)
{
  sim_message m = {.type = SIM_MSG_COMMIT, .place = place};

  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].accepted)
      sim_send(s, i, &m);
  }
}

/* A sync is told between the commits before and behind it. */
static void commit(sim_server *s)
{
  size_t end = agreed(s);

  while (s->committed < end) {
    size_t next = end;

    if (s->nsyncs > 0 && s->syncs[0].place < next)
      next = s->syncs[0].place;
    sim_ensemble_commit(s->ensemble, s, next);
    s->committed = next;
    tell_commit(s, next);
    answer_syncs(s);
    sim_pipeline_commit(s, next);
  }
}

void sim_lead_logged(sim_server *s)
{
  if (!s->established && count_accepted(s) >= sim_quorum(s->ensemble))
    establish(s);
  if (s->established)
    commit(s);
}

void sim_lead_sync(sim_server *s, unsigned from, int64_t session, int32_t xid)
{
  if (s->nsyncs == s->syncs_cap) {
    s->syncs_cap = s->syncs_cap == 0 ? 16 : s->syncs_cap * 2;
    s->syncs = realloc(s->syncs, s->syncs_cap * sizeof *s->syncs);
  }
  s->syncs[s->nsyncs++] = (sim_pending_sync){from, session, xid, s->count};
  answer_syncs(s);
}

/* ---- followers ---------------------------------------------------------- */

/* How far the logs of two servers are the same. */
static size_t common(const sim_server *a, const sim_server *b)
{
  size_t place = a->count < b->count ? a->count : b->count;

  while (place > 0 && a->log[place - 1] != b->log[place - 1])
    place--;
  return place;
}

/* It gets what it has not, and from now on all that is proposed. */
static void take_in(sim_server *s, unsigned from)
{
  size_t place = common(s, &s->ensemble->servers[from]);
  sim_message m = {.type = SIM_MSG_TRUNCATE, .place = place};

  s->followers[from] = (sim_follower){
      .joined = true, .until_tick = s->followers[from].until_tick};
  sim_send(s, from, &m);
  for (; place < s->count; place++)
    propose_to(s, from, place);
  m = (sim_message){.type = SIM_MSG_NEW_LEADER, .epoch = s->epoch};
  sim_send(s, from, &m);
}

static void accepted(sim_server *s, unsigned from, size_t place)
{
  s->followers[from].accepted = true;
  s->followers[from].acked = place;
  if (s->established)
    let_serve(s, from);
  sim_lead_logged(s);
}

static void revalidate(sim_server *s, unsigned from, const sim_message *m)
{
  sim_message answer = {.type = SIM_MSG_VALID, .session = m->session};

  answer.valid =
      s->established && sim_tracker_resume(s, m->session, m->timeout_ms, from);
  sim_send(s, from, &answer);
}

void sim_lead_gone(sim_server *s, unsigned follower)
{
  s->followers[follower] = (sim_follower){0};
}

void sim_lead_message(sim_server *s, unsigned from, const sim_message *m)
{
  s->followers[from].until_tick = s->tick + s->ensemble->config.sync_limit;
  switch (m->type) {
  case SIM_MSG_JOIN: take_in(s, from); break;
  case SIM_MSG_ACCEPT: accepted(s, from, m->place); break;
  case SIM_MSG_ACK:
    s->followers[from].acked = m->place;
    sim_lead_logged(s);
    break;
  case SIM_MSG_REQUEST: sim_pipeline_forwarded(s, m->ask, (int)from); break;
  case SIM_MSG_SYNC: sim_lead_sync(s, from, m->session, m->xid); break;
  case SIM_MSG_REVALIDATE: revalidate(s, from, m); break;
  case SIM_MSG_TOUCH: sim_tracker_touch(s, m->session, m->timeout_ms); break;
  case SIM_MSG_BYE: sim_lead_gone(s, from); break;
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

/* ---- by the clock ------------------------------------------------------- */

/* Followers have some time to come. */
static bool has_lost(const sim_server *s)
{
  bool early = !s->established && s->tick <= s->ensemble->config.sync_limit;
  unsigned count = 1;

  for (unsigned i = 0; i < s->ensemble->count; i++)
    count += s->followers[i].joined && s->followers[i].until_tick >= s->tick;
  return !early && count < sim_quorum(s->ensemble);
}

/* Who is late is given up. */
static void ping(sim_server *s, unsigned follower)
{
  sim_message m = {.type = SIM_MSG_PING};

  if (s->followers[follower].until_tick >= s->tick) {
    sim_send(s, follower, &m);
    return;
  }
  sim_lead_gone(s, follower);
  sim_hang_up(s, follower);
}

/* Twice a tick; the followers are counted once. */
void sim_lead_tick(sim_server *s)
{
  s->half = !s->half;
  s->tick += s->half;
  if (s->half && has_lost(s)) {
    sim_enter_looking(s, "has lost its followers");
    return;
  }
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    if (s->followers[i].joined)
      ping(s, i);
  }
  sim_server_do(s, SIM_DUTY_TICK, sim_tick_us(s->ensemble) / 2);
}

/* A container that has had a child, or a node to which nothing was written for
 * its time to live. */
static bool is_over(const sim_server *s, const sim_node *n)
{
  const sim_ensemble *e = s->ensemble;
  int64_t now_ms = e->config.epoch_ms + e->agenda->now_us / SIM_MS;

  if (n->children != NULL)
    return false;
  return (n->container && n->counter > 0) ||
         (n->ttl_ms > 0 && now_ms - n->stat.mtime > n->ttl_ms);
}

static void sweep(sim_server *s, const sim_node *n)
{
  for (const sim_node *k = n->children; k != NULL; k = k->next)
    sweep(s, k);
  if (!is_over(s, n))
    return;
  sim_operation want = {.path = lk_text(n->path), .version = -1};

  sim_pipeline_ask(s, NULL,
                   sim_write_request_new(0, SIM_OP_DELETE_CONTAINER, &want,
                                         &s->ensemble->arena));
}

void sim_lead_sweep(sim_server *s)
{
  sweep(s, s->tree.root);
  sim_server_do(s, SIM_DUTY_SWEEP, s->ensemble->config.sweep_ms * SIM_MS);
}
