/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/allocate.h"
#include "sim/world/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs a seed again and again with less time and fewer faults, for as long as
 * the same invariant is violated. Each run is a process of its own, so that a
 * run in which the program dies can be shortened as well.
 */

enum {
  RUNS_MAX = 1000,
  RUN_MAX_S = 60 /* of real time */
};

/* The result of a run, in memory shared with the parent. */
typedef struct trial {
  sim_schedule record;
  bool is_broken;
  size_t invariant; /* the first one that was violated; `sim_ninvariants`: the
                       program died */
} trial;

typedef struct shrinker {
  sim_plan plan;
  trial *last;
  sim_schedule *shortest;
  sim_schedule candidate;
  size_t invariant;
  unsigned runs;
} shrinker;

static trial *trial_new(void)
{
  trial *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (t == MAP_FAILED)
    abort();
  return t;
}

static void trial_free(trial *t)
{
  munmap(t, sizeof *t);
}

static void trial_run_here(trial *t, const sim_plan *plan)
{
  sim_world w;

  alarm(RUN_MAX_S);
  sim_plan_begin(&w, plan, plan->first);
  w.trace.out = NULL;
  w.record = &t->record;
  sim_world_run(&w);
  t->is_broken = sim_checker_violations(w.checker) > 0;
  t->invariant = t->is_broken ? sim_first_violated(&w) : 0;
}

static void trial_run(trial *t, const sim_plan *plan)
{
  int status;

  memset(t, 0, sizeof *t);
  fflush(NULL);
  pid_t pid = fork();

  if (pid == 0) {
    trial_run_here(t, plan);
    _exit(0);
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid)
    abort();
  if (status != 0) {
    t->is_broken = true;
    t->invariant = sim_ninvariants;
  }
}

/* Puts the faults of the run in place of the random ones. */
static void plan_take_faults(sim_plan *plan, const trial *t)
{
  *plan->schedule = t->record;
  plan->schedule->is_listed = true;
}

bool sim_plan_keep_faults(sim_plan *plan)
{
  if (!plan->schedule->is_listed) {
    trial *t = trial_new();

    trial_run(t, plan);
    plan_take_faults(plan, t);
    trial_free(t);
  }
  return sim_schedule_keep(plan->schedule, plan->kept_faults);
}

/* Runs the candidate, which becomes the shortest schedule if it violates the
 * same invariant. */
static bool try_candidate(shrinker *s)
{
  if (s->runs++ >= RUNS_MAX)
    return false;
  s->plan.choice.schedule = &s->candidate;
  trial_run(s->last, &s->plan);
  if (!s->last->is_broken || s->last->invariant != s->invariant)
    return false;
  *s->shortest = s->candidate;
  return true;
}

/* Searches the shortest phase with faults by bisection. */
static void shorten_time(shrinker *s)
{
  int64_t too_short_ms = 0;

  for (;;) {
    int64_t long_enough_ms = s->shortest->until_us / SIM_MS;
    int64_t ms = (too_short_ms + long_enough_ms) / 2;

    if (ms == too_short_ms)
      return;
    s->candidate = *s->shortest;
    s->candidate.until_us = ms * SIM_MS;
    while (s->candidate.count > 0 &&
           s->candidate.faults[s->candidate.count - 1].at_us > ms * SIM_MS)
      s->candidate.count--;
    if (!try_candidate(s))
      too_short_ms = ms;
  }
}

/* Tries to leave out `size` faults at each place. false: none could be left
 * out. */
static bool remove_faults(shrinker *s, size_t size)
{
  bool any_removed = false;

  for (size_t end = s->shortest->count; end >= size; end -= size) {
    s->candidate = *s->shortest;
    sim_schedule_remove(&s->candidate, end - size, size);
    any_removed = try_candidate(s) || any_removed;
  }
  return any_removed;
}

bool sim_plan_shrink(sim_plan *plan)
{
  shrinker *s = sim_allocate(sizeof *s);

  *s = (shrinker){
      .plan = *plan, .last = trial_new(), .shortest = plan->schedule};
  trial_run(s->last, &s->plan);
  if (s->last->is_broken) {
    s->invariant = s->last->invariant;
    if (!plan->schedule->is_listed)
      plan_take_faults(plan, s->last);
    plan->schedule->until_us = s->last->record.until_us;
    int64_t first_ms = plan->schedule->until_us / SIM_MS;
    size_t first_count = plan->schedule->count;

    shorten_time(s);
    for (size_t size = first_count / 2; size > 1; size /= 2)
      (void)remove_faults(s, size);
    while (remove_faults(s, 1))
      continue;
    shorten_time(s);
    printf("shrunk in %u runs: %" PRId64 " ms and %zu faults, from %" PRId64
           " ms and %zu faults\n",
           s->runs, plan->schedule->until_us / SIM_MS, plan->schedule->count,
           first_ms, first_count);
  }
  bool dies = s->invariant == sim_ninvariants;

  if (dies)
    sim_report_death(plan, plan->first);
  trial_free(s->last);
  free(s);
  return !dies;
}
