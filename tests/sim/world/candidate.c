/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/coverage.h"
#include "sim/world/facts.h"
#include "sim/world/leases.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The candidates of all processes take part in one election. They resign, start
 * again and are freed at random times, also in callbacks, and sometimes an
 * operator deletes a node of one of them. At the end each has led once more.
 */

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static void make_candidate(sim_actor *a);

lk_layout sim_election_layout(const sim_world *w)
{
  static const lk_layout layouts[] = {LK_LAYOUT_LATCH, LK_LAYOUT_CURATOR,
                                      LK_LAYOUT_KAZOO, LK_LAYOUT_NATIVE_UUID};
  sim_rng root = {w->seed};
  sim_rng r = sim_rng_fork(&root, 'v');

  return layouts[sim_roll(&r, sizeof layouts / sizeof layouts[0])];
}

static int64_t random_time(sim_actor *a)
{
  return sim_between(&a->rng, 0, sim_actor_T_us(a) / 4);
}

static void free_candidate(sim_actor *a)
{
  lk_candidate *c = a->candidate->candidate;

  a->candidate->candidate = NULL;
  lk_candidate_free(c);
}

/* ---- events -------------------------------------------------------------- */

static void act_in_callback(sim_actor *a)
{
  sim_candidate *c = a->candidate;

  switch (sim_roll(&a->rng, 24)) {
  case 0: lk_candidate_resign(c->candidate); break;
  case 1: (void)lk_candidate_start(c->candidate); break;
  case 2:
    free_candidate(a);
    if (sim_process_runs(a->process))
      make_candidate(a);
    break;
  default: break;
  }
}

static void on_event(lk_candidate *candidate, const lk_candidate_event *event,
                     void *arg)
{
  sim_actor *a = arg;
  sim_candidate *c = a->candidate;
  bool after_free = candidate != c->candidate;

  TRACE(a, "is %s, term 0x%" PRIx64 "%s%s",
        lk_candidate_event_text(event->type), event->term,
        event->err == 0 ? "" : ": ",
        event->err == 0 ? "" : lk_error_name(event->err));
  sim_report_fact(a->process->world->checker,
                  &(sim_fact){.type = SIM_CANDIDATE_EVENT,
                              .candidate_actor = a,
                              .candidate_event = event,
                              .candidate_freed = after_free});
  if (after_free)
    return;
  if (event->type == LK_CANDIDATE_EVENT_ELECTED) {
    sim_coverage_milestone(SIM_MILESTONE_ELECTED);
    c->has_led = true;
  }
  if (event->type == LK_CANDIDATE_EVENT_DEPOSED && event->err != 0)
    sim_coverage_milestone(SIM_MILESTONE_DEPOSED);
  if (event->type != LK_CANDIDATE_EVENT_ENDED)
    act_in_callback(a);
  if (sim_process_runs(a->process))
    sim_actor_act_in(a, random_time(a));
}

/* ---- operations ---------------------------------------------------------- */

static void make_candidate(sim_actor *a)
{
  lk_lock_config lock = {.size = sizeof lock,
                         .data = lk_text(a->name),
                         .fail_on_expiry = sim_one_in(&a->rng, 4),
                         .unsure_when_suspended = sim_one_in(&a->rng, 6),
                         .revocable = sim_one_in(&a->rng, 2)};
  lk_candidate_config config = {
      .size = sizeof config,
      .pause_ms = (int32_t)sim_between(&a->rng, 1, 20),
      .max_pause_ms = 50,
      .on_event = on_event,
      .arg = a,
  };

  *a->candidate = (sim_candidate){.candidate = NULL};
  a->process->failing_allocations = 0; /* these calls must not fail */
  (void)sim_lease_get(a->process);
  if (lk_election_new(&a->candidate->candidate, a->process->client,
                      SIM_ELECTION_DIR, sim_election_layout(a->process->world),
                      &lock, &config) != 0)
    abort();
}

static void act_at_random(sim_actor *a)
{
  sim_candidate *c = a->candidate;
  bool stopped = lk_candidate_get_state(c->candidate) == LK_CANDIDATE_STOPPED;

  switch (sim_roll(&a->rng, 16)) {
  case 0:
    free_candidate(a);
    make_candidate(a);
    break;
  case 1: sim_actor_delete_any_child(a, SIM_ELECTION_DIR); break;
  case 2: lk_candidate_resign(c->candidate); break;
  default:
    if (stopped && lk_candidate_start(c->candidate) != 0)
      TRACE(a, "cannot start");
    break;
  }
}

/* Takes part until it has led since the end of the faults. */
static void act_at_the_end(sim_actor *a)
{
  sim_candidate *c = a->candidate;

  if (!c->stops)
    c->has_led = false;
  c->stops = true;
  c->has_led |= lk_candidate_ok(c->candidate);
  if (c->has_led)
    lk_candidate_resign(c->candidate);
  else
    (void)lk_candidate_start(c->candidate);
  a->idle = c->has_led;
}

static void candidate_act(sim_actor *a)
{
  if (a->candidate->candidate == NULL)
    make_candidate(a);
  if (a->stopping)
    act_at_the_end(a);
  else
    act_at_random(a);
  if (!a->idle && sim_process_runs(a->process))
    sim_actor_act_in(a, random_time(a));
}

static void candidate_start(sim_actor *a)
{
  if (a->candidate == NULL)
    a->candidate = sim_allocate(sizeof *a->candidate);
  make_candidate(a);
  sim_actor_act_in(a, random_time(a));
}

const sim_actor_kind sim_candidate_actor = {.start = candidate_start,
                                            .act = candidate_act,
                                            .leave = free_candidate,
                                            .reports_idle = true};
