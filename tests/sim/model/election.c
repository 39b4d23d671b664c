/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/read_only.h"

/**
 * @file Leader election. A looking server polls the others at random intervals.
 * If a quorum has a leader, the server follows it. Otherwise, if a quorum is
 * looking, the server with the newest log becomes leader.
 */

/* ---- roles -------------------------------------------------------------- */

static void schedule_election(sim_server *s)
{
  const int64_t *wait = s->ensemble->config.election_us;

  sim_server_schedule(s, SIM_TASK_ELECT,
                      sim_between(&s->rng, wait[0], wait[1]));
}

void sim_enter_looking(sim_server *s, const char *why)
{
  static const enum sim_task leader_and_follower_tasks[] = {
      SIM_TASK_TICK, SIM_TASK_EXPIRE, SIM_TASK_DELETE_UNUSED, SIM_TASK_SILENCE,
      SIM_TASK_DISK};
  enum {
    NTASKS =
        sizeof leader_and_follower_tasks / sizeof leader_and_follower_tasks[0]
  };

  if (why != NULL)
    SIM_TRACE(s->ensemble->trace, s->name, "%s: looks for a leader", why);
  s->role = SIM_LOOKING;
  s->serves = false;
  s->read_only = false;
  s->established = false;
  for (size_t i = 0; i < NTASKS; i++)
    sim_server_cancel(s, leader_and_follower_tasks[i]);
  for (unsigned i = 0; i < s->ensemble->count; i++) {
    s->followers[i] = (sim_follower){0};
    sim_close_channel(s, i);
  }
  sim_conns_close_all(s);
  sim_pipeline_drop(&s->pipeline);
  s->outstanding.first = s->outstanding.count = 0;
  s->nsyncs = s->ntouches = 0;
  sim_log_flush_at_once(s);
  if (!s->runs)
    return;
  schedule_election(s);
  if (s->ensemble->config.read_only_after_us > 0)
    sim_server_schedule(s, SIM_TASK_READ_ONLY,
                        s->ensemble->config.read_only_after_us);
}

void sim_enter_following(sim_server *s, unsigned leader)
{
  sim_ensemble *e = s->ensemble;
  sim_message join = {.type = SIM_MSG_JOIN};

  SIM_TRACE(e->trace, s->name, "follows server %u", leader);
  sim_read_only_end(s);
  s->role = SIM_FOLLOWING;
  s->leader = leader;
  s->leader_heard_us = e->agenda->now_us;
  s->channels[leader] = ++e->last_channel;
  sim_server_cancel(s, SIM_TASK_ELECT);
  sim_server_schedule(s, SIM_TASK_SILENCE,
                      e->config.sync_limit * sim_tick_us(e));
  sim_send(s, leader, &join);
}

void sim_enter_leading(sim_server *s, int32_t epoch)
{
  SIM_TRACE(s->ensemble->trace, s->name, "is elected, epoch %d", (int)epoch);
  sim_read_only_end(s);
  s->role = SIM_LEADING;
  s->epoch = s->promised_epoch = epoch;
  sim_server_cancel(s, SIM_TASK_ELECT);
  sim_leader_start(s);
}

/* ---- elections ---------------------------------------------------------- */

static bool is_reachable(const sim_server *a, const sim_server *b)
{
  return a == b || (b->runs && !b->stopped &&
                    !sim_link_of(a->ensemble, a->index, b->index)->cut &&
                    !sim_link_of(a->ensemble, b->index, a->index)->cut);
}

/* The leader of a quorum among the servers that `s` can reach; NULL: there is
 * none. */
static sim_server *leader_of_quorum(const sim_server *s)
{
  sim_ensemble *e = s->ensemble;

  for (unsigned i = 0; i < e->count; i++) {
    sim_server *leader = &e->servers[i];
    unsigned votes = 0;

    if (leader->role != SIM_LEADING || !is_reachable(s, leader))
      continue;
    for (unsigned k = 0; k < e->count; k++) {
      const sim_server *voter = &e->servers[k];
      bool follows =
          voter->role == SIM_FOLLOWING && voter->leader == leader->index;

      if (is_reachable(s, voter) && (voter == leader || follows))
        votes++;
    }
    if (votes >= sim_quorum(e))
      return leader;
  }
  return NULL;
}

static bool has_newer_log(const sim_server *a, const sim_server *b)
{
  if (a->epoch != b->epoch)
    return a->epoch > b->epoch;
  if (sim_log_zxid(a) != sim_log_zxid(b))
    return sim_log_zxid(a) > sim_log_zxid(b);
  return a->index > b->index;
}

/* The looking server with the newest log that `s` can reach. */
static sim_server *newest_reachable(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  sim_server *newest = s;

  for (unsigned i = 0; i < e->count; i++) {
    sim_server *candidate = &e->servers[i];

    if (candidate->role == SIM_LOOKING && is_reachable(s, candidate) &&
        has_newer_log(candidate, newest))
      newest = candidate;
  }
  return newest;
}

/* The servers that vote for `newest`: a bit for each looking server that both
 * can reach. */
static uint32_t votes_for(const sim_server *s, const sim_server *newest)
{
  sim_ensemble *e = s->ensemble;
  uint32_t votes = 0;

  for (unsigned i = 0; i < e->count; i++) {
    const sim_server *voter = &e->servers[i];

    if (voter->role == SIM_LOOKING && is_reachable(s, voter) &&
        is_reachable(newest, voter))
      votes |= 1U << i;
  }
  return votes;
}

static bool has_voted(uint32_t votes, unsigned server)
{
  return (votes >> server & 1) != 0;
}

static unsigned count_votes(uint32_t votes)
{
  unsigned count = 0;

  for (; votes != 0; votes >>= 1)
    count += votes & 1;
  return count;
}

void sim_elect(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  sim_server *leader = leader_of_quorum(s);

  if (leader != NULL) {
    sim_enter_following(s, leader->index);
    return;
  }
  sim_server *newest = newest_reachable(s);
  uint32_t votes = votes_for(s, newest);
  int32_t epoch = 0;

  if (count_votes(votes) < sim_quorum(e)) {
    schedule_election(s);
    return;
  }
  for (unsigned i = 0; i < e->count; i++) {
    if (has_voted(votes, i) && e->servers[i].promised_epoch > epoch)
      epoch = e->servers[i].promised_epoch;
  }
  if (e->count > 1) /* a standalone server stays in the same epoch */
    epoch++;
  for (unsigned i = 0; i < e->count; i++) {
    if (has_voted(votes, i) && &e->servers[i] != newest) {
      e->servers[i].promised_epoch = epoch;
      sim_enter_following(&e->servers[i], newest->index);
    }
  }
  sim_enter_leading(newest, epoch);
}
