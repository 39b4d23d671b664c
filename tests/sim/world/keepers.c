/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/keepers.h"

#include "sim/world/conditions.h"
#include "sim/world/coverage.h"
#include "sim/world/judge.h"
#include "sim/world/limits.h"
#include "sim/world/scenario.h"

#include <stdlib.h>

static bool has_several(const sim_process *p)
{
  return sim_has_condition(p->world, SIM_KEEPERS);
}

static void on_left_behind(lk_keeper *k, const char *path, int err, void *arg)
{
  sim_process *p = arg;

  (void)k;
  SIM_SAY(&p->world->trace, p->name, "leaves %s behind: %s", path,
          lk_error_name(err));
}

/* The first one has that of its process; the others have any. */
static lk_assurance some_assurance(const sim_process *p, unsigned at)
{
  sim_rng r = sim_rng_fork(&p->rng, 'k' * 256 + at);

  return at == 0 || p->world->scenario->assurance > 0
             ? p->assurance
             : (lk_assurance)sim_roll(&r, LK_ASSURE_PING + 1);
}

static void make(sim_process *p, unsigned at)
{
  sim_kept *kept = &p->keepers[at];
  lk_keeper_config config = {.size = sizeof config,
                             .assurance = some_assurance(p, at),
                             .left_behind = on_left_behind,
                             .arg = p};

  sim_limit_keeper(p, at, &config);
  p->starves = 0;
  if (lk_keeper_new(&kept->keeper, p->client, &config) != 0)
    abort();
  kept->users = 0;
  kept->first = false;
  if (has_several(p))
    SIM_SAY(&p->world->trace, p->name, "makes keeper %u", at);
  if (lk_client_state(p->client) != LK_STATE_CONNECTING)
    sim_coverage_moment(SIM_MOMENT_LATE_KEEPER);
  sim_judge_kept(p->world->judge, p, kept->keeper);
}

void sim_keepers_start(sim_process *p)
{
  sim_rng r = sim_rng_fork(&p->rng, 'k');

  if (has_several(p) && sim_roll(&r, 2) == 0)
    return;
  make(p, 0);
  p->keepers[0].first = true;
}

lk_keeper *sim_keepers_take(sim_process *p, sim_rng *r)
{
  unsigned at = has_several(p) ? sim_roll(r, SIM_MOST_KEEPERS) : 0;
  sim_kept *kept = &p->keepers[at];

  if (kept->keeper == NULL)
    make(p, at);
  kept->users++;
  return kept->keeper;
}

static void free_one(sim_kept *kept)
{
  lk_keeper *k = kept->keeper;

  kept->keeper = NULL;
  lk_keeper_free(k);
}

/* What it has still to delete is deleted by nobody if that request is lost. */
void sim_keepers_give(sim_process *p, lk_keeper *k, sim_rng *r)
{
  for (unsigned i = 0; i < SIM_MOST_KEEPERS; i++) {
    sim_kept *kept = &p->keepers[i];

    if (kept->keeper != k || --kept->users > 0 || !has_several(p) ||
        p->leaving || sim_roll(r, lk_keeper_unfinished(k) > 0 ? 8 : 2) > 0)
      continue;
    SIM_SAY(&p->world->trace, p->name, "frees keeper %u", i);
    sim_coverage_moment(SIM_MOMENT_KEEPER_FREED);
    sim_judge_unkept(p->world->judge, p, k);
    free_one(kept);
  }
}

void sim_keepers_free(sim_process *p)
{
  for (unsigned i = 0; i < SIM_MOST_KEEPERS; i++)
    free_one(&p->keepers[i]);
}

void sim_keepers_die(sim_process *p)
{
  for (unsigned i = 0; i < SIM_MOST_KEEPERS; i++)
    p->keepers[i].keeper = NULL;
}

bool sim_keepers_any(const sim_process *p)
{
  bool some = false;

  for (unsigned i = 0; i < SIM_MOST_KEEPERS; i++)
    some = some || p->keepers[i].keeper != NULL;
  return some;
}

lk_keeper *sim_keepers_first(const sim_process *p)
{
  return p->keepers[0].first ? p->keepers[0].keeper : NULL;
}

size_t sim_keepers_unfinished(const sim_process *p)
{
  size_t n = 0;

  for (unsigned i = 0; i < SIM_MOST_KEEPERS; i++) {
    if (p->keepers[i].keeper != NULL)
      n += lk_keeper_unfinished(p->keepers[i].keeper);
  }
  return n;
}
