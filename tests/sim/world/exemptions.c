/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

#include <string.h>

/* When an invariant excuses a client, and how long it waits before it
 * reports. */

/* If servers may throttle a client or refuse its requests, it pauses before it
 * repeats a request. */
static int64_t pauses_us(const sim_checker *checker)
{
  enum { THROTTLE_PAUSES_MS = 5000 }; /* longer than all pauses together */

  return sim_fault_is_possible(checker->world, SIM_FAULT_THROTTLE) ||
                 sim_fault_is_possible(checker->world, SIM_FAULT_ERRORS)
             ? THROTTLE_PAUSES_MS * SIM_MS
             : 0;
}

/* A client may have to reconnect and to send one request. */
int64_t sim_grace_us(const sim_checker *checker)
{
  return 2 * sim_T_us(checker) + pauses_us(checker);
}

/* The fault limits all routes of a process, so the first one shows it. */
static bool has_bandwidth_limit(const sim_checker *checker, const sim_life *l)
{
  return sim_network_route(checker->world->network, l->process->index, 0)
             ->us_per_kb > 0;
}

/* Whether at `at_us` `e` has had the condition that `s` follows for longer than
 * `us`. */
static bool condition_lasts(sim_checker *checker, const sim_life *l,
                            sim_grace *s, const sim_entry *e, int64_t at_us,
                            int64_t us)
{
  if (e == NULL || s->entry != e)
    *s = (sim_grace){.entry = e, .zxid = checker->history.zxid};
  bool client_can_know = l->state == LK_STATE_CONNECTED &&
                         sim_process_runs(l->process) &&
                         l->seen_zxid >= s->zxid;

  if (e == NULL || !client_can_know)
    return false;
  bool was_disturbed = s->since_us < l->undisturbed_since_us ||
                       s->since_us < checker->links_last_slow_us ||
                       has_bandwidth_limit(checker, l);

  if (s->since_us == 0 || was_disturbed)
    s->since_us = sim_now_us(checker);
  if (at_us - s->since_us <= us)
    return false;
  /* if the condition lasts, it is reported again after the same time */
  s->entry = NULL;
  return true;
}

bool sim_grace_is_over(sim_checker *checker, const sim_life *l, sim_grace *s,
                       const sim_entry *e)
{
  return condition_lasts(checker, l, s, e, sim_now_us(checker),
                         sim_grace_us(checker));
}

bool sim_is_overdue(sim_checker *checker, const sim_life *l, bool condition,
                    int64_t *since, int64_t limit_us)
{
  if (!condition) {
    *since = 0;
    return false;
  }
  if (*since == 0 || *since < l->undisturbed_since_us ||
      *since < l->throttled_us)
    *since = sim_now_us(checker);
  if (sim_now_us(checker) - *since <= limit_us)
    return false;
  *since = 0;
  return true;
}

/* Within half a session timeout a heartbeat reads the node, unless it waits for
 * evidence. A request that is sent later is answered after that read. */
bool sim_own_deleted_is_overdue(sim_checker *checker, const sim_life *l,
                                sim_grace *s, const sim_entry *e)
{
  int64_t half = sim_T_us(checker) / 2;
  int64_t heartbeat_wait = sim_T_us(checker) / 16;

  return condition_lasts(checker, l, s, e, l->replied_us,
                         half + heartbeat_wait + pauses_us(checker));
}

static bool servers_may_be_cut(const sim_world *w)
{
  static const enum sim_fault faults[] = {
      SIM_FAULT_SERVER_CRASH, SIM_FAULT_SERVER_STOP, SIM_FAULT_RESTARTS,
      SIM_FAULT_FOLLOWER_CUT, SIM_FAULT_LEADER_CUT,  SIM_FAULT_DEPOSED,
      SIM_FAULT_LAG,          SIM_FAULT_PARTITION,   SIM_FAULT_LATE_WRITE};

  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    if (sim_fault_is_possible(w, faults[i]))
      return true;
  }
  return false;
}

/* Whether there may be a server that was the leader and does not know yet that
 * another was elected. It notices when it has not heard from a quorum for
 * sync_limit ticks. A server that is stopped, for 3 T at most, notices it when
 * it continues. */
static bool may_be_deposed(const sim_checker *checker)
{
  const sim_ensemble_config *c = &checker->world->config;
  bool servers_stop =
      sim_fault_is_possible(checker->world, SIM_FAULT_SERVER_STOP) ||
      sim_fault_is_possible(checker->world, SIM_FAULT_DEPOSED);
  int64_t noticed_within_us =
      (c->sync_limit + 1) * (int64_t)c->tick_ms * SIM_MS +
      (servers_stop ? 4 : 1) * sim_T_us(checker);

  return checker->leader_since_us > 0 &&
         sim_now_us(checker) - checker->leader_since_us < noticed_within_us;
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

/* Whether the session was resumed with a shorter timeout that the client does
 * not know yet: the reply has not arrived. */
static bool timeout_was_shortened_unseen(const sim_session *s)
{
  return s != NULL && s->granted_ms < s->known_ms && s->granted_ms > 0;
}

/* Whether the leader's pings were late a short time ago. The lease deadline
 * assumes that they are on time; see lease.h. */
static bool pings_may_be_late(const sim_checker *checker)
{
  int64_t a_short_time_us = 2 * sim_T_us(checker);

  return (checker->leader_last_stopped_us > 0 &&
          sim_now_us(checker) - checker->leader_last_stopped_us <
              a_short_time_us) ||
         (checker->link_delay_grew_us > 0 &&
          sim_now_us(checker) - checker->link_delay_grew_us < a_short_time_us);
}

/* Whether the leader may not know of the last replies to the session's client:
 * it did not hear from the client's server at some time in the session timeout
 * before the expiry. Older replies prove nothing at that time. */
static bool replies_may_be_unreported(const sim_checker *checker,
                                      const sim_entry *e)
{
  const sim_session *s = e->creator_session;

  return s != NULL && s->unheard_us > 0 &&
         e->deleted_us - s->unheard_us <= sim_T_us(checker);
}

/* A single server has received all that it answers, and no other one ends
 * sessions, so each reply proves the session. */
static bool is_only_server(const sim_checker *checker)
{
  return checker->world->config.servers == 1;
}

bool sim_deletion_is_excused(const sim_checker *checker, const sim_entry *e)
{
  if (e->deletion_cause == SIM_DELETED_BY_OTHERS ||
      e->deletion_cause == SIM_DELETED_BY_OPERATOR)
    return true;
  if (e->deletion_cause != SIM_DELETED_BY_EXPIRY)
    return false;
  if (timeout_was_shortened_unseen(e->creator_session))
    return true;
  if (is_only_server(checker))
    return false;
  if (pings_may_be_late(checker))
    return true;
  switch (e->assurance) {
  case LK_ASSURE_QUORUM: return false;
  case LK_ASSURE_SYNC: return may_be_deposed(checker);
  case LK_ASSURE_PING:
    return servers_may_be_cut(checker->world) ||
           replies_may_be_unreported(checker, e);
  }
  return false;
}
