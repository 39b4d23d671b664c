/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/limits.h"

#include "sim/world/conditions.h"
#include "sim/world/coverage.h"

/* The least limits. They are larger than a heartbeat of all locks of a process,
 * than the list of a queue, and than the number of requests that recover own
 * nodes after a reconnect. */
enum { LEAST_REQUEST = 7000, LEAST_REPLY = 30000, LEAST_OUTSTANDING = 400 };

enum { DEFAULT = 0 }; /* of each limit */

/* The object whose limits are chosen. */
enum limited { CLIENT, LEASE };

/* A random generator of its own for each life of a process, and for its client
 * and its session lease. */
static sim_rng rng_of(const sim_process *p, enum limited of)
{
  return sim_rng_fork(&p->rng, 'l' * 256 * 256 + p->life * 256 + of);
}

/* After a wipe, servers refuse a client that has seen a later zxid, until it
 * gives up its session. */
static bool may_be_refused(const sim_world *w)
{
  return sim_fault_is_possible(w, SIM_FAULT_WIPE) ||
         sim_fault_is_possible(w, SIM_FAULT_RESTORE);
}

/* A time after which a client without a connection gives up its session:
 * shorter or longer than the session timeout, the default, or never. If servers
 * may refuse the client for ever, it must give up at some time. */
static int32_t random_give_up(sim_rng *r, const sim_world *w)
{
  int32_t t = w->timeout_ms;

  switch (sim_roll(r, 4)) {
  case 0: return may_be_refused(w) ? 4 * t : LK_NO_LIMIT;
  case 1: return (int32_t)sim_between(r, t / 2, t);
  case 2: return (int32_t)sim_between(r, t, 4 * (int64_t)t);
  default: return DEFAULT;
  }
}

static size_t random_size(sim_rng *r, size_t least)
{
  return sim_one_in(r, 3) ? DEFAULT : least + sim_roll(r, (uint32_t)least);
}

void sim_limit_client(const sim_process *p, lk_client_config *config)
{
  sim_rng r = rng_of(p, CLIENT);

  if (!sim_has_condition(p->world, SIM_LIMITS))
    return;
  sim_coverage_milestone(SIM_MILESTONE_LIMITS);
  config->session_timeout_ms = p->world->timeout_ms;
  if (!sim_one_in(&r, 2))
    config->session_timeout_ms =
        (int32_t)sim_between(&r, p->world->shortest_ms, p->world->longest_ms);
  config->give_up_ms = random_give_up(&r, p->world);
  config->send_limit = random_size(&r, LEAST_REQUEST);
  config->receive_limit = random_size(&r, LEAST_REPLY);
  /* Many readers have more requests outstanding. */
  if (!sim_has_condition(p->world, SIM_MANY_READERS))
    config->outstanding_limit = random_size(&r, LEAST_OUTSTANDING);
}

/* The gap must not be shorter than the interval of the leader's pings. */
void sim_limit_lease(const sim_process *p, lk_lease_config *config)
{
  sim_rng r = rng_of(p, LEASE);
  int32_t shortest = p->world->shortest_ms;
  int32_t ping_interval = p->world->config.tick_ms / 2;

  if (!sim_has_condition(p->world, SIM_LIMITS))
    return;
  if (sim_one_in(&r, 2))
    config->margin_ms = (int32_t)sim_between(&r, 1, shortest / 6);
  if (sim_one_in(&r, 2))
    config->gap_ms = (int32_t)sim_between(&r, ping_interval, shortest / 3);
}
