/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/report.h"

#include "sim/world/allocate.h"
#include "sim/world/conditions.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"
#include "sim/world/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  JOBS_MAX = 64,
  SEEDS_LISTED_MAX = 100,
  TRACES_MAX = 2,
  ENOUGH = 20 /* grants, or faults, of a run that tests something */
};

static const bool WITH_COUNTS = true;

/* Figures of one run, or of many. */
typedef struct tally {
  uint64_t runs;
  uint64_t broken; /* number of runs with a violation */
  uint64_t grants;
  uint64_t faults;
  uint64_t steps;  /* number of jobs of the agenda */
  int64_t time_us; /* virtual time */
  uint64_t quiet;  /* number of runs with fewer than ENOUGH grants or faults */
} tally;

/* The seed of a violation, and the first invariant that was violated. */
typedef struct failure {
  uint64_t seed;
  size_t invariant;
} failure;

/* A run with few grants or faults. */
typedef struct quiet_run {
  uint64_t seed;
  uint64_t grants;
  uint64_t faults;
} quiet_run;

/* The result of a child process, in memory shared with the parent. */
typedef struct job_result {
  uint64_t seed; /* the seed that runs now, or ran last */
  failure failures[SEEDS_LISTED_MAX];
  size_t nfailures;
  quiet_run quiet_runs[SEEDS_LISTED_MAX];
  size_t nquiet_runs;
  tally tally;
  unsigned char coverage[];
} job_result;

static void add_tally(tally *sum, const tally *t)
{
  sum->runs += t->runs;
  sum->broken += t->broken;
  sum->grants += t->grants;
  sum->faults += t->faults;
  sum->steps += t->steps;
  sum->time_us += t->time_us;
  sum->quiet += t->quiet;
}

/* ---- one run ------------------------------------------------------------ */

void sim_plan_begin(sim_world *w, const sim_plan *plan, uint64_t seed)
{
  sim_world_init(w, seed, &plan->choice);
  w->keep_going = plan->keep_going;
  w->trace.out = plan->trace ? stdout : NULL;
  for (size_t i = 0; i < plan->nwithout; i++)
    (void)sim_checker_disable(w->checker, plan->without[i]);
}

static tally tally_of(const sim_world *w)
{
  bool broken = sim_checker_violations(w->checker) > 0;

  return (tally){.runs = 1,
                 .broken = broken,
                 .grants = w->grants,
                 .faults = w->nfaults,
                 .steps = w->agenda.done,
                 .time_us = w->agenda.now_us,
                 .quiet =
                     !broken && (w->grants < ENOUGH || w->nfaults < ENOUGH)};
}

size_t sim_first_violated(const sim_world *w)
{
  size_t i = 0;
  const char *what;

  while (sim_checker_violations_of(w->checker, i, &what) == 0)
    i++;
  return i;
}

static void run_seed(const sim_plan *plan, job_result *result)
{
  sim_world w;

  sim_plan_begin(&w, plan, result->seed);
  sim_world_run(&w);
  tally t = tally_of(&w);

  add_tally(&result->tally, &t);
  if (t.quiet > 0 && result->nquiet_runs < SEEDS_LISTED_MAX)
    result->quiet_runs[result->nquiet_runs++] =
        (quiet_run){result->seed, t.grants, t.faults};
  if (t.broken > 0 && result->nfailures < SEEDS_LISTED_MAX)
    result->failures[result->nfailures++] =
        (failure){.seed = result->seed, .invariant = sim_first_violated(&w)};
  sim_world_destroy(&w);
}

/* Prints the choices for a run as options. */
static void print_choices(const sim_world *w, FILE *out)
{
  char conditions[SIM_CONDITIONS_TEXT];

  sim_conditions_print(w->conditions, conditions, sizeof conditions);
  fprintf(out, "--seed %" PRIu64 " --scenario %s --locks %s --style %s%s%s",
          w->seed, w->scenario->name, w->lock_mix->name, w->style->name,
          conditions, w->all_requests ? " --all-requests" : "");
  if (w->servers > 0)
    fprintf(out, " --servers %u", w->servers);
  fprintf(out, " --zookeeper %s", w->config.version);
}

static void print_replay(const sim_plan *plan, const sim_world *w)
{
  printf("replay: simulate ");
  if (plan->schedule_file != NULL)
    printf("--schedule %s", plan->schedule_file);
  else
    print_choices(w, stdout);
  if (w->schedule != NULL && w->schedule->until_us > 0)
    printf(" --until %" PRId64, w->schedule->until_us / SIM_MS);
  if (w->schedule != NULL && w->schedule->is_listed) {
    printf(" --faults ");
    sim_schedule_print_numbers(w->schedule, stdout);
  }
  printf(" --trace\n");
}

static void save_schedule(const sim_plan *plan, const sim_world *w)
{
  FILE *file = fopen(plan->save_file, "w");

  if (file == NULL) {
    perror(plan->save_file);
    exit(EXIT_FAILURE);
  }
  fprintf(file, "# For simulate --schedule FILE. A fault has its time in\n"
                "# microseconds, its kind, and the state of the generator\n"
                "# from which it draws its process, server, duration, ...\n");
  print_choices(w, file);
  fprintf(file, "\n");
  sim_schedule_print(w->record, file);
  fclose(file);
}

static void print_broken(const sim_plan *plan, const sim_world *w)
{
  for (size_t i = 0; i < sim_ninvariants; i++) {
    const char *what;
    size_t count = sim_checker_violations_of(w->checker, i, &what);

    if (count > 0)
      printf("BROKEN %s: %s%s\n", sim_invariants[i].name, what,
             count > 1 ? " (and more)" : "");
  }
  print_replay(plan, w);
}

bool sim_report_one(const sim_plan *plan)
{
  sim_world w;
  tally t;

  sim_plan_begin(&w, plan, plan->first);
  if (!plan->trace)
    sim_trace_keep(&w.trace);
  if (plan->save_file != NULL)
    w.record = sim_allocate(sizeof *w.record);
  sim_world_run(&w);
  t = tally_of(&w);
  if (t.broken > 0) {
    sim_trace_print(&w.trace, stdout);
    print_broken(plan, &w);
  }
  if (plan->save_file != NULL)
    save_schedule(plan, &w);
  free(w.record);
  printf("seed %" PRIu64 ", %s, %s, %s: %" PRIu64 " grants, %" PRIu64
         " faults, %.1f s, %s\n",
         w.seed, w.scenario->name, w.lock_mix->name, w.style->name, t.grants,
         t.faults, (double)t.time_us / 1e6,
         t.broken > 0 ? "broken" : "no violation");
  sim_world_destroy(&w);
  if (plan->coverage)
    sim_coverage_print(stdout, WITH_COUNTS);
  return t.broken == 0;
}

/* ---- many runs ---------------------------------------------------------- */

static size_t job_result_size(void)
{
  return sizeof(job_result) + sim_coverage_size();
}

/* The seeds are dealt out in turn: job `k` runs every seed whose index modulo
 * the number of jobs is `k`. */
static void run_job(const sim_plan *plan, unsigned k, job_result *result)
{
  for (uint64_t i = k; i < plan->count; i += plan->jobs) {
    result->seed = plan->first + i;
    run_seed(plan, result);
  }
  sim_coverage_save(result->coverage);
}

static job_result *start_job(const sim_plan *plan, unsigned k, pid_t *pid)
{
  job_result *result = mmap(NULL, job_result_size(), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (result == MAP_FAILED)
    abort();
  fflush(NULL);
  *pid = fork();
  if (*pid < 0)
    abort();
  if (*pid == 0) {
    run_job(plan, k, result);
    exit(EXIT_SUCCESS); /* so that leaks are looked for, and gcov counts */
  }
  return result;
}

static void print_seed(const sim_plan *plan, uint64_t seed)
{
  sim_world w;
  char conditions[SIM_CONDITIONS_TEXT];

  sim_world_choose(&w, seed, &plan->choice);
  sim_conditions_print(w.conditions, conditions, sizeof conditions);
  printf("seed %" PRIu64 ", %s, %s, %s,%s", seed, w.scenario->name,
         w.lock_mix->name, w.style->name, conditions);
}

void sim_report_death(const sim_plan *plan, uint64_t seed)
{
  sim_world w;

  sim_world_choose(&w, seed, &plan->choice);
  printf("BROKEN: the program died\n");
  print_replay(plan, &w);
  w.record = plan->schedule;
  if (plan->save_file != NULL)
    save_schedule(plan, &w);
}

/* Runs the seed again and prints its trace. */
static void print_trace_of(const sim_plan *plan, uint64_t seed)
{
  sim_plan again = *plan;

  again.first = seed;
  again.trace = false;
  again.coverage = false;
  printf("---- seed %" PRIu64 "\n", seed);
  (void)sim_report_one(&again);
}

/* Waits for the job, and prints its result. false: the job died. */
static bool finish_job(const sim_plan *plan, job_result *result, pid_t pid,
                       tally *sum)
{
  int status;

  if (waitpid(pid, &status, 0) != pid)
    abort();
  add_tally(sum, &result->tally);
  bool finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;

  if (finished)
    sim_coverage_add(result->coverage);
  else
    sim_report_death(plan, result->seed);
  for (size_t i = 0; i < result->nfailures; i++) {
    const failure *f = &result->failures[i];

    printf("broken: ");
    print_seed(plan, f->seed);
    printf(": %s\n", sim_invariants[f->invariant].name);
    if (i < TRACES_MAX)
      print_trace_of(plan, f->seed);
  }
  for (size_t i = 0; i < result->nquiet_runs; i++) {
    const quiet_run *q = &result->quiet_runs[i];

    printf("few: ");
    print_seed(plan, q->seed);
    printf(": %" PRIu64 " grants, %" PRIu64 " faults\n", q->grants, q->faults);
  }
  munmap(result, job_result_size());
  return finished;
}

static double now_seconds(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool sim_report_many(const sim_plan *plan)
{
  pid_t pids[JOBS_MAX];
  job_result *results[JOBS_MAX];
  tally sum = {0};
  bool all_finished = true;
  double began = now_seconds();
  sim_plan own = *plan;

  if (own.jobs == 0 || own.jobs > JOBS_MAX)
    own.jobs = 1;
  for (unsigned k = 0; k < own.jobs; k++)
    results[k] = start_job(&own, k, &pids[k]);
  for (unsigned k = 0; k < own.jobs; k++)
    all_finished = finish_job(&own, results[k], pids[k], &sum) && all_finished;
  double took = now_seconds() - began;

  printf("%" PRIu64 " seeds, %" PRIu64 " broken: %" PRIu64 " grants, %" PRIu64
         " faults, %.0f simulated seconds, %" PRIu64
         " steps in %.1f s: %.0f seeds/s\n",
         sum.runs, sum.broken, sum.grants, sum.faults,
         (double)sum.time_us / 1e6, sum.steps, took, (double)sum.runs / took);
  if (sum.quiet > 0)
    printf("%" PRIu64 " seeds had less than %d grants or faults\n", sum.quiet,
           ENOUGH);
  sim_coverage_print(stdout, plan->coverage);
  return all_finished && sum.broken == 0;
}
