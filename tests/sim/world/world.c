/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/world.h"

#include "sim/world/actors.h"
#include "sim/world/allocate.h"
#include "sim/world/checker.h"
#include "sim/world/conditions.h"
#include "sim/world/faults.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"
#include "sim/world/network.h"
#include "sim/world/process.h"
#include "sim/world/scenario.h"
#include "sim/world/schedule.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  TICKS_MIN = 2,  /* in a session timeout, as in ZooKeeper */
  TICKS_MAX = 20, /* in a session timeout, as in ZooKeeper */
  TIMEOUT_MAX_MS = 6000,
  LONG_TIMEOUT_MAX_MS = 40000,
  SILENT_TIMEOUT_MIN_MS = 2000, /* where a holder must find another server */
  USUAL_SWEEP_MS = 60000,       /* between deletions of empty containers */
  FAULTS_MIN = 20,
  GRANTS_MIN = 20,
  TIMEOUTS_MAX = 200,        /* maximum length of a run with too few grants */
  QUIESCENT_TIMEOUTS = 60,   /* maximum time until the run is quiescent */
  MOST_JOBS_AT_ONCE = 20000, /* at one virtual time; more: an endless loop */
  AT_ONCE = 0
};

/* in milliseconds since 1970 */
#define A_TIME_IN_2023_MS INT64_C(1700000000000)

/* ---- choices by the seed ------------------------------------------------ */

/* A session timeout within the bounds of the servers, often the least one. */
static int32_t random_timeout(sim_rng *r, int32_t tick)
{
  int64_t most = TICKS_MAX * (int64_t)tick;

  if (sim_one_in(r, 3))
    return TICKS_MIN * tick;
  return (int32_t)sim_between(r, TICKS_MIN * tick,
                              most < TIMEOUT_MAX_MS ? most : TIMEOUT_MAX_MS);
}

/* Ticks of usual servers, and a session timeout within their bounds. */
static void choose_long_timeout(sim_world *w, sim_rng *r, int32_t *tick)
{
  *tick = (int32_t)sim_between(r, LONG_TIMEOUT_MAX_MS / TICKS_MAX, 3000);
  w->timeout_ms = (int32_t)sim_between(r, TIMEOUT_MAX_MS, LONG_TIMEOUT_MAX_MS);
}

static unsigned random_servers(const sim_world *w, sim_rng *r)
{
  bool has_epochs = sim_fault_is_possible(w, SIM_FAULT_WIPE) ||
                    sim_fault_is_possible(w, SIM_FAULT_RESTORE);

  if (sim_has_condition(w, SIM_FEW_SERVERS))
    return has_epochs ? 2 : 1 + sim_roll(r, 2);
  return sim_one_in(r, 4) ? 5 : 3;
}

/* The other draws of a seed are the same with each number of servers. */
static unsigned choose_servers(const sim_world *w, sim_rng *r)
{
  unsigned by_seed = random_servers(w, r);

  return w->servers == 0 ? by_seed : w->servers;
}

/* Two versions are those of the servers in turn, as during an upgrade. The
 * checker expects of both the same about events that need READ, so seeds do not
 * choose the last pair. */
static const char *const versions[] = {
    "debian", "3.5.10", "3.6.4",        "3.7.2",       "3.8.6",
    "3.9.5",  "3.9.6",  "3.5.10+3.7.2", "3.8.6+3.9.6", "3.5.10+3.9.6"};
enum {
  VERSIONS = sizeof versions / sizeof versions[0],
  OF_SEEDS = VERSIONS - 1
};

const char *sim_version_find(const char *name)
{
  for (size_t i = 0; i < VERSIONS; i++) {
    if (strcmp(versions[i], name) == 0)
      return versions[i];
  }
  return NULL;
}

/* Half of the seeds have the servers of Debian. */
static const char *choose_version(const sim_world *w)
{
  sim_rng r = sim_rng_fork(&w->rng, 'v');
  uint32_t which = sim_roll(&r, 2 * (OF_SEEDS - 1));

  if (w->version != NULL)
    return w->version;
  return which < OF_SEEDS - 1 ? versions[which + 1] : versions[0];
}

static bool choose_no_local_sessions(const sim_world *w)
{
  sim_rng r = sim_rng_fork(&w->rng, 'o');

  return sim_one_in(&r, 2);
}

static void choose_sizes(sim_world *w)
{
  enum { PATHS = 3 };

  static const char *const paths[PATHS] = {"/locks/a", "/b",
                                           "/very/deep/down/c"};
  sim_rng r = sim_rng_fork(&w->rng, 'w');
  bool clocks_drift = w->scenario->drift;
  int32_t tick = (int32_t)sim_between(&r, 100, clocks_drift ? 200 : 1000);
  int32_t least_timeout = w->scenario->one_silent ? SILENT_TIMEOUT_MIN_MS : 0;
  uint32_t first_path = sim_roll(&r, PATHS);

  w->timeout_ms = clocks_drift ? TICKS_MAX * tick : random_timeout(&r, tick);
  if (w->timeout_ms < least_timeout)
    w->timeout_ms = least_timeout;
  if (sim_has_condition(w, SIM_LONG_TIMEOUTS))
    choose_long_timeout(w, &r, &tick);
  w->config = (sim_ensemble_config){
      .servers = choose_servers(w, &r),
      .tick_ms = tick,
      .sync_limit = (int32_t)sim_between(&r, 2, 5),
      .sweep_ms =
          w->scenario->sweep_ms == 0 ? USUAL_SWEEP_MS : w->scenario->sweep_ms,
      .ttls = w->all_requests,
      .version = choose_version(w),
      .no_local_sessions = choose_no_local_sessions(w),
      .wall_clock_start_ms = A_TIME_IN_2023_MS + sim_between(&r, 0, 1000000)};
  w->shortest_ms = w->longest_ms = w->timeout_ms;
  if (sim_fault_is_possible(w, SIM_FAULT_BOUNDS) ||
      sim_has_condition(w, SIM_LIMITS)) {
    w->shortest_ms = TICKS_MIN * tick;
    w->longest_ms = SIM_TIMEOUT_FACTOR_MAX * w->timeout_ms;
  }
  if (sim_has_condition(w, SIM_READ_ONLY))
    w->config.read_only_after_us = tick / 2 * SIM_MS;
  if (sim_fault_is_possible(w, SIM_FAULT_WIPE) ||
      sim_fault_is_possible(w, SIM_FAULT_RESTORE))
    w->config.first_epoch = SIM_MOST_WIPES * SIM_INCARNATION_EPOCHS;
  w->nprocesses = (size_t)sim_between(&r, 4, 6);
  w->nlocks = (size_t)sim_between(&r, 1, 2);
  for (uint32_t i = 0; i < w->nlocks; i++)
    snprintf(w->locks[i], sizeof w->locks[i], "%s",
             paths[(first_path + i) % PATHS]);
}

/* Scenarios that bound what happens have no conditions, which add faults. A
 * single server has no epochs, by which incarnations are told apart. */
static unsigned choose_conditions(const sim_world *w, const unsigned *chosen)
{
  enum { NO_CONDITIONS = 0 };
  const unsigned need_epochs =
      SIM_CONDITION(SIM_WIPES) | SIM_CONDITION(SIM_RESTORES);

  if (w->scenario->calm || w->scenario->one_silent)
    return NO_CONDITIONS;
  unsigned set = chosen == NULL ? sim_conditions_of(w->seed) : *chosen;

  return w->servers == 1 ? set & ~need_epochs : set;
}

/* Many readers need read-write locks. */
static const sim_lock_mix *choose_lock_mix(const sim_world *w)
{
  return sim_has_condition(w, SIM_MANY_READERS) ? sim_lock_mix_find("rwlock")
                                                : sim_lock_mix_of(w->seed);
}

void sim_world_choose(sim_world *w, uint64_t seed, const sim_choice *choice)
{
  memset(w, 0, sizeof *w);
  w->seed = seed;
  w->scenario =
      choice->scenario == NULL ? sim_scenario_of(seed) : choice->scenario;
  w->servers = choice->servers;
  w->version = choice->version;
  w->conditions = choose_conditions(w, choice->conditions);
  sim_note_possible_faults(w);
  w->lock_mix =
      choice->lock_mix == NULL ? choose_lock_mix(w) : choice->lock_mix;
  w->style = choice->style == NULL ? sim_lock_style_of(seed, w->lock_mix)
                                   : choice->style;
  w->schedule = choice->schedule;
  w->all_requests = choice->all_requests;
}

void sim_world_init(sim_world *w, uint64_t seed, const sim_choice *choice)
{
  sim_rng root = {seed};

  sim_world_choose(w, seed, choice);
  w->rng = sim_rng_fork(&root, 1);
  w->trace.agenda = &w->agenda;
  choose_sizes(w);
  sim_lock_mix_set_paths(w);
  w->checker = sim_checker_new(w);
  sim_ensemble_hooks hooks = sim_checker_hooks(w->checker);

  w->ensemble = sim_ensemble_new(&w->config, &w->agenda,
                                 sim_rng_fork(&w->rng, 'e'), &w->trace, &hooks);
  w->network = sim_network_new(w);
  w->processes = sim_allocate(w->nprocesses * sizeof *w->processes);
  for (unsigned i = 0; i < w->nprocesses; i++)
    sim_process_init(&w->processes[i], w, i);
  w->faults = sim_faults_new(w);
}

void sim_world_destroy(sim_world *w)
{
  for (size_t i = 0; i < w->nprocesses; i++) {
    sim_process_crash(&w->processes[i], SIM_CLOSE_SILENTLY);
    sim_process_destroy(&w->processes[i]);
  }
  sim_faults_free(w->faults);
  sim_network_free(w->network);
  sim_ensemble_free(w->ensemble);
  sim_checker_free(w->checker);
  free(w->processes);
  sim_trace_free(&w->trace);
}

/* ---- time --------------------------------------------------------------- */

/* The job at the end of a time that passes. */
static void do_nothing(void *arg)
{
  (void)arg;
}

static void check_time_advances(const sim_world *w, size_t jobs)
{
  if (jobs < MOST_JOBS_AT_ONCE)
    return;
  fprintf(stderr, "seed %llu: time does not advance\n",
          (unsigned long long)w->seed);
  abort();
}

/* Pauses the processes whose last call took time. */
static void pause_for_spent_time(sim_world *w)
{
  for (size_t i = 0; i < w->nprocesses; i++)
    sim_process_pause_for_spent_time(&w->processes[i]);
}

/* Advances the virtual time by `us`. false: an invariant was violated. */
static bool pass_time(sim_world *w, int64_t us)
{
  sim_job end = {.run = do_nothing};
  int64_t last_us = w->agenda.now_us;
  size_t jobs = 0; /* at the same virtual time */

  sim_schedule_in(&w->agenda, &end, us);
  while (lk__heap_has(&end.node)) {
    sim_step(&w->agenda);
    if (sim_has_condition(w, SIM_CLOCK_STEPS))
      pause_for_spent_time(w);
    sim_checker_after_job(w->checker);
    if (w->agenda.now_us == last_us)
      jobs++;
    else
      jobs = 0;
    last_us = w->agenda.now_us;
    check_time_advances(w, jobs);
    if (!w->keep_going && sim_checker_violations(w->checker) > 0) {
      sim_unschedule(&w->agenda, &end);
      return false;
    }
  }
  return true;
}

/* ---- phases of a run ---------------------------------------------------- */

/* As pass_time(); records until when the phase with faults lasts. */
static bool pass_time_with_faults(sim_world *w, int64_t us)
{
  if (w->record != NULL)
    w->record->until_us = w->agenda.now_us + us;
  return pass_time(w, us);
}

static bool run_with_faults(sim_world *w, int64_t T_us)
{
  int64_t until_us = w->schedule == NULL ? 0 : w->schedule->until_us;
  sim_rng r = sim_rng_fork(&w->rng, 's');
  size_t faults = FAULTS_MIN + sim_roll(&r, 10);
  size_t grants = GRANTS_MIN + sim_roll(&r, 20);

  for (size_t i = 0; i < w->nprocesses; i++)
    sim_process_start_in(&w->processes[i], sim_between(&r, 0, T_us));
  if (!pass_time(w, T_us))
    return false;
  sim_faults_begin(w->faults);
  if (until_us > 0) /* and all that is due at its end, as a last fault */
    return pass_time_with_faults(w, until_us > T_us ? until_us - T_us : 0) &&
           pass_time(w, AT_ONCE);
  for (int i = 0; i < TIMEOUTS_MAX; i++) {
    if (w->nfaults >= faults && w->grants >= grants)
      return true;
    if (!pass_time_with_faults(w, T_us))
      return false;
  }
  return true;
}

/* Ends all faults, waits until all processes run, and stops the actors. */
static bool end_faults(sim_world *w, int64_t T_us)
{
  SIM_TRACE(&w->trace, "world", "all faults end");
  w->faults_over = true;
  sim_faults_end(w->faults);
  for (size_t i = 0; i < w->nprocesses; i++) {
    if (w->processes[i].client == NULL)
      sim_process_start_in(&w->processes[i], AT_ONCE);
  }
  for (size_t i = 0; i < w->nprocesses; i++) {
    while (w->processes[i].paused) {
      if (!pass_time(w, T_us / 4))
        return false;
    }
    if (sim_process_runs(&w->processes[i]))
      sim_actors_stop(&w->processes[i]);
    if (w->processes[i].has_resumed)
      (void)sim_process_close(&w->processes[i], AT_ONCE);
  }
  for (int i = 0; i < QUIESCENT_TIMEOUTS * 4; i++) {
    if (!pass_time(w, T_us / 4))
      return false;
    if (sim_checker_is_quiescent(w->checker))
      break;
  }
  sim_checker_when_quiescent(w->checker);
  return true;
}

static bool free_clients(sim_world *w, int64_t T_us)
{
  for (size_t i = 0; i < w->nprocesses; i++)
    sim_process_free_client(&w->processes[i]);
  return pass_time(w, T_us);
}

void sim_world_run(sim_world *w)
{
  int64_t T_us = w->timeout_ms * SIM_MS;
  char conditions[SIM_CONDITIONS_TEXT];

  sim_conditions_print(w->conditions, conditions, sizeof conditions);
  SIM_TRACE(&w->trace, "world",
            "seed %llu, %s, %s, %s: %u servers, %zu processes, "
            "timeout %d ms, tick %d ms,%s",
            (unsigned long long)w->seed, w->scenario->name, w->lock_mix->name,
            w->style->name, w->config.servers, w->nprocesses,
            (int)w->timeout_ms, (int)w->config.tick_ms, conditions);
  if (run_with_faults(w, T_us) && end_faults(w, T_us))
    (void)free_clients(w, T_us);
}
