/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

#include <string.h>

enum { THROTTLE_RESTS_MS = 5000 };

/* When an invariant excuses a client, and how long it waits. */

/* The time for one request after a reconnect, and for the pauses of a throttled
 * request. */
int64_t sim_grace_us(const sim_checker *checker)
{
  bool throttled = sim_fault_is_possible(checker->world, SIM_FAULT_THROTTLE);

  return 2 * sim_T_us(checker) + (throttled ? THROTTLE_RESTS_MS * SIM_MS : 0);
}

/* The routes of a process are limited all together. */
static bool has_bandwidth_limit(const sim_checker *checker, const sim_life *l)
{
  return sim_network_route(checker->world->network, l->process->index, 0)
             ->kb_us > 0;
}

bool sim_grace_is_over(sim_checker *checker, const sim_life *l, sim_grace *s,
                       const sim_entry *e)
{
  if (e == NULL || s->entry != e)
    *s = (sim_grace){.entry = e, .zxid = checker->history.zxid};
  if (e == NULL || l->state != LK_STATE_CONNECTED ||
      !sim_process_runs(l->process) || l->seen_zxid < s->zxid)
    return false;
  if (s->since_us == 0 || s->since_us < l->undisturbed_since_us ||
      s->since_us < checker->links_last_slow_us ||
      has_bandwidth_limit(checker, l))
    s->since_us = sim_now_us(checker);
  if (sim_now_us(checker) - s->since_us <= sim_grace_us(checker))
    return false;
  s->entry = NULL; /* reported again after the same time */
  return true;
}

/* Whether servers may be cut off from each other. */
static bool servers_may_be_cut(const sim_world *w)
{
  static const enum sim_fault faults[] = {
      SIM_FAULT_SERVER_CRASH, SIM_FAULT_SERVER_STOP, SIM_FAULT_RESTARTS,
      SIM_FAULT_FOLLOWER_CUT, SIM_FAULT_LEADER_CUT,  SIM_FAULT_DEPOSED,
      SIM_FAULT_LAG,          SIM_FAULT_PARTITION,   SIM_FAULT_LATE_WRITE};
  bool some = false;

  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    some = some || sim_fault_is_possible(w, faults[i]);
  return some;
}

/* Whether the last leader may not know yet that it was deposed. A server that
 * was stopped, for 3 T at most, notices it after it continues. */
static bool is_deposed(const sim_checker *checker)
{
  const sim_ensemble_config *c = &checker->world->config;
  bool stops = sim_fault_is_possible(checker->world, SIM_FAULT_SERVER_STOP) ||
               sim_fault_is_possible(checker->world, SIM_FAULT_DEPOSED);
  int64_t limit = (c->sync_limit + 1) * (int64_t)c->tick_ms * SIM_MS +
                  (stops ? 4 : 1) * sim_T_us(checker);

  return checker->leader_since_us > 0 &&
         sim_now_us(checker) - checker->leader_since_us < limit;
}

sim_life *sim_owner_of(sim_checker *checker, const sim_entry *e)
{
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    sim_life *l = &checker->lives[i];

    if (l->process != NULL && sim_process_has_client(l->process) &&
        l->state != LK_STATE_CLOSED &&
        e->session == lk_client_session(l->process->client).id)
      return l;
  }
  return NULL;
}

bool sim_is_written(const sim_checker *checker, const char *data)
{
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    for (const sim_version *v = e->newest; v != NULL; v = v->older) {
      if (strcmp(v->data, data) == 0)
        return true;
    }
  }
  return false;
}

/* The reply to a resume with a shorter timeout has not reached the client. */
static bool is_shortened_unseen(const sim_session *s)
{
  return s != NULL && s->granted_ms < s->known_ms && s->granted_ms > 0;
}

/* The lease deadline assumes that the leader's pings are on time; see
 * lease.h. */
static bool is_pinged_late(const sim_checker *checker)
{
  int64_t limit = 2 * sim_T_us(checker);

  return (checker->leader_last_stopped_us > 0 &&
          sim_now_us(checker) - checker->leader_last_stopped_us < limit) ||
         (checker->late_since_us > 0 &&
          sim_now_us(checker) - checker->late_since_us < limit);
}

bool sim_deletion_is_excused(const sim_checker *checker, const sim_entry *e)
{
  if (e->deletion_cause == SIM_DELETED_BY_OTHERS ||
      e->deletion_cause == SIM_DELETED_BY_OPERATOR)
    return true;
  if (e->deletion_cause != SIM_DELETED_BY_EXPIRY)
    return false;
  if (is_pinged_late(checker) || is_shortened_unseen(e->creator_session))
    return true;
  switch (e->assurance) {
  case LK_ASSURE_QUORUM: return false;
  case LK_ASSURE_SYNC: return is_deposed(checker);
  case LK_ASSURE_PING: return servers_may_be_cut(checker->world);
  }
  return false;
}
