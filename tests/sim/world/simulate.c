/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/conditions.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"
#include "sim/world/report.h"
#include "sim/world/scenario.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

/*
 * A ZooKeeper ensemble, a network and processes with locks, in one process and
 * on virtual time. The seed determines the run.
 */

static const char help[] =
    "usage: simulate [OPTION]...\n"
    "Clients of a simulated ensemble contend for locks while faults happen.\n"
    "Invariants are checked throughout.\n"
    "\n"
    "  --seed N             run this seed and report it in full\n"
    "  --seeds FIRST:COUNT  run COUNT seeds from FIRST on\n"
    "  --scenario NAME      faults and sizes (default: by the seed)\n"
    "  --locks NAME         kinds of locks (default: by the seed)\n"
    "  --style NAME         layout of the nodes (default: by the seed)\n"
    "  --condition NAME     an additional condition, or none; may be repeated\n"
    "                       (default: by the seed)\n"
    "  --all-requests       add rare requesters and watchers\n"
    "  --trace              print each event of the run\n"
    "  --without INVARIANT  do not check this invariant; may be repeated\n"
    "  --all                continue after a violation\n"
    "  --jobs N             run N seeds at a time\n"
    "  --coverage           print how often each fault happened\n"
    "  --list               print all names and the invariants\n"
    "  --help               print this text\n"
    "\n"
    "Exit code: 0 no violation, 1 a violation, 2 wrong usage.\n";

enum { EXIT_VIOLATION = 1, EXIT_USAGE = 2 };

enum {
  OPT_SEED = 1,
  OPT_SEEDS,
  OPT_SCENARIO,
  OPT_LOCKS,
  OPT_STYLE,
  OPT_CONDITION,
  OPT_ALL_REQUESTS,
  OPT_TRACE,
  OPT_WITHOUT,
  OPT_ALL,
  OPT_JOBS,
  OPT_COVERAGE,
  OPT_LIST,
  OPT_HELP
};

static const struct option options[] = {
    {"seed", required_argument, NULL, OPT_SEED},
    {"seeds", required_argument, NULL, OPT_SEEDS},
    {"scenario", required_argument, NULL, OPT_SCENARIO},
    {"locks", required_argument, NULL, OPT_LOCKS},
    {"style", required_argument, NULL, OPT_STYLE},
    {"condition", required_argument, NULL, OPT_CONDITION},
    {"all-requests", no_argument, NULL, OPT_ALL_REQUESTS},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"without", required_argument, NULL, OPT_WITHOUT},
    {"all", no_argument, NULL, OPT_ALL},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"coverage", no_argument, NULL, OPT_COVERAGE},
    {"list", no_argument, NULL, OPT_LIST},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0}};

static void exit_with_usage_error(const char *what)
{
  fprintf(stderr, "simulate: %s; see --help\n", what);
  exit(EXIT_USAGE);
}

static uint64_t parse_number(const char *text)
{
  enum { ANY_BASE = 0 }; /* decimal, octal or hexadecimal */
  char *end;
  uint64_t n = strtoull(text, &end, ANY_BASE);

  if (end == text || *end != '\0')
    exit_with_usage_error("expected a number");
  return n;
}

static void set_scenario(sim_plan *plan, const char *name)
{
  plan->choice.scenario = sim_scenario_find(name);
  if (plan->choice.scenario == NULL)
    exit_with_usage_error("no such scenario");
}

static void set_lock_mix(sim_plan *plan, const char *name)
{
  plan->choice.lock_mix = sim_lock_mix_find(name);
  if (plan->choice.lock_mix == NULL)
    exit_with_usage_error("no such locks");
}

static void set_style(sim_plan *plan, const char *name)
{
  plan->choice.style = sim_lock_style_find(name);
  if (plan->choice.style == NULL)
    exit_with_usage_error("no such lock style");
}

static void set_condition(sim_plan *plan, const char *name)
{
  unsigned bit;

  if (!sim_condition_find(name, &bit))
    exit_with_usage_error("no such condition");
  plan->conditions |= bit;
  plan->choice.conditions = &plan->conditions; /* none are chosen by the seed */
}

static void set_without(sim_plan *plan, const char *name)
{
  if (plan->nwithout == SIM_MOST_WITHOUT)
    exit_with_usage_error("too many invariants");
  for (size_t i = 0; i < sim_ninvariants; i++) {
    if (strcmp(sim_invariants[i].name, name) == 0) {
      plan->without[plan->nwithout++] = name;
      return;
    }
  }
  exit_with_usage_error("no such invariant");
}

static void set_seeds(sim_plan *plan, char *range)
{
  char *colon = strchr(range, ':');

  if (colon == NULL)
    exit_with_usage_error("--seeds: expected FIRST:COUNT");
  *colon = '\0';
  plan->first = parse_number(range);
  plan->count = parse_number(colon + 1);
}

static void print_list(void)
{
#define FAULT(name, function, text) printf("  %-16s %s\n", #function, text);
  printf("scenarios:\n");
  for (size_t i = 0; i < sim_nscenarios; i++)
    printf("  %-16s %s\n", sim_scenarios[i].name, sim_scenarios[i].text);
  printf("locks:\n");
  for (size_t i = 0; i < sim_nlock_mixes; i++)
    printf("  %-16s %s\n", sim_lock_mixes[i].name, sim_lock_mixes[i].text);
  printf("lock styles:\n");
  for (size_t i = 0; i < sim_nlock_styles; i++)
    printf("  %-16s %s\n", sim_lock_styles[i].name, sim_lock_styles[i].text);
  printf("conditions:\n");
  for (size_t i = 0; i < SIM_NCONDITIONS; i++)
    printf("  %-16s %s\n", sim_conditions[i].name, sim_conditions[i].text);
  printf("faults:\n");
  SIM_FAULTS(FAULT)
  printf("invariants:\n");
  for (size_t i = 0; i < sim_ninvariants; i++)
    printf("  %-24s %s\n", sim_invariants[i].name, sim_invariants[i].text);
#undef FAULT
}

static void parse_options(sim_plan *plan, int argc, char **argv)
{
  int c;

  while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (c) {
    case OPT_SEED:
      plan->first = parse_number(optarg);
      plan->count = 1;
      plan->one = true;
      break;
    case OPT_SEEDS: set_seeds(plan, optarg); break;
    case OPT_SCENARIO: set_scenario(plan, optarg); break;
    case OPT_LOCKS: set_lock_mix(plan, optarg); break;
    case OPT_STYLE: set_style(plan, optarg); break;
    case OPT_CONDITION: set_condition(plan, optarg); break;
    case OPT_ALL_REQUESTS: plan->choice.all_requests = true; break;
    case OPT_TRACE: plan->trace = true; break;
    case OPT_WITHOUT: set_without(plan, optarg); break;
    case OPT_ALL: plan->keep_going = true; break;
    case OPT_JOBS: plan->jobs = (unsigned)parse_number(optarg); break;
    case OPT_COVERAGE: plan->coverage = true; break;
    case OPT_LIST: print_list(); exit(EXIT_SUCCESS);
    case OPT_HELP: fputs(help, stdout); exit(EXIT_SUCCESS);
    default: exit_with_usage_error("unknown option");
    }
  }
  if (optind < argc || plan->count == 0)
    exit_with_usage_error("--seed or --seeds is required");
  if (plan->choice.lock_mix != NULL && plan->choice.style != NULL &&
      !sim_lock_style_fits(plan->choice.style, plan->choice.lock_mix))
    exit_with_usage_error("these locks do not support that style");
}

int main(int argc, char **argv)
{
  sim_plan plan = {.jobs = 1};

  parse_options(&plan, argc, argv);
  bool no_violation = plan.one ? sim_report_one(&plan) : sim_report_many(&plan);

  return no_violation ? EXIT_SUCCESS : EXIT_VIOLATION;
}
