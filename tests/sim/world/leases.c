/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/leases.h"

#include "sim/world/checker.h"
#include "sim/world/conditions.h"
#include "sim/world/coverage.h"
#include "sim/world/limits.h"
#include "sim/world/scenario.h"

#include <stdlib.h>

static void on_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  sim_process *p = arg;

  (void)c;
  SIM_TRACE(&p->world->trace, p->name, "left behind: %s: %s", path,
            lk_error_name(err));
}

static void make_lease(sim_process *p)
{
  lk_lease_config config = {.size = sizeof config,
                            .assurance = p->assurance,
                            .left_behind = on_left_behind,
                            .arg = p};

  sim_limit_lease(p, &config);
  p->failing_allocations = 0; /* this call must not fail */
  if (lk_lease_configure(p->client, &config) != 0)
    abort();
  bool session_came_first = lk_client_state(p->client) != LK_STATE_CONNECTING;

  if (session_came_first)
    sim_coverage_milestone(SIM_MILESTONE_LATE_LEASE);
  sim_checker_note_lease_made(p->world->checker, p);
}

void sim_lease_maybe_make(sim_process *p)
{
  sim_rng r = sim_rng_fork(&p->rng, 'k');

  if (!sim_has_condition(p->world, SIM_LATE_LEASE) || !sim_one_in(&r, 2))
    make_lease(p);
}

lk_session_lease *sim_lease_get(sim_process *p)
{
  if (lk__client_lease(p->client) == NULL)
    make_lease(p);
  return lk__client_lease(p->client);
}

size_t sim_lease_unfinished(const sim_process *p)
{
  return p->client == NULL ? 0 : lk_lease_pending_cleanups(p->client);
}
