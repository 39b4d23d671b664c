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
    "  --servers N          number of servers, 1 to 5 (default: by the seed);\n"
    "                       one server is never wiped or restored\n"
    "  --zookeeper VERSION  version of the servers, such as 3.9.6, or debian\n"
    "                       (default: by the seed)\n"
    "  --all-requests       add rare requesters and watchers\n"
    "  --trace              print each event of the run\n"
    "  --until MS           end the phase with faults after this time\n"
    "  --faults LIST        of the faults of this run, keep only these, as in\n"
    "                       3,7-9, or none\n"
    "  --shrink             of a run that violates an invariant, search the\n"
    "                       shortest time and the fewest faults that still do\n"
    "  --save FILE          write time and faults of this run to FILE\n"
    "  --schedule FILE      run what was saved\n"
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
  OPT_SERVERS,
  OPT_ZOOKEEPER,
  OPT_ALL_REQUESTS,
  OPT_TRACE,
  OPT_UNTIL,
  OPT_FAULTS,
  OPT_SHRINK,
  OPT_SAVE,
  OPT_SCHEDULE,
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
    {"servers", required_argument, NULL, OPT_SERVERS},
    {"zookeeper", required_argument, NULL, OPT_ZOOKEEPER},
    {"all-requests", no_argument, NULL, OPT_ALL_REQUESTS},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"until", required_argument, NULL, OPT_UNTIL},
    {"faults", required_argument, NULL, OPT_FAULTS},
    {"shrink", no_argument, NULL, OPT_SHRINK},
    {"save", required_argument, NULL, OPT_SAVE},
    {"schedule", required_argument, NULL, OPT_SCHEDULE},
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

static void set_servers(sim_plan *plan, const char *text)
{
  uint64_t n = parse_number(text);

  if (n < 1 || n > SIM_WORLD_SERVERS)
    exit_with_usage_error("--servers: expected 1 to 5");
  plan->choice.servers = (unsigned)n;
}

static void set_version(sim_plan *plan, const char *name)
{
  plan->choice.version = sim_version_find(name);
  if (plan->choice.version == NULL)
    exit_with_usage_error("no such version");
}

static void set_without(sim_plan *plan, const char *name)
{
  if (plan->nwithout == SIM_MOST_WITHOUT)
    exit_with_usage_error("too many invariants");
  for (size_t i = 0; i < sim_ninvariants; i++) {
    if (strcmp(sim_invariants[i].name, name) == 0) {
      plan->without[plan->nwithout++] = sim_invariants[i].name;
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

static void read_schedule(sim_plan *plan, const char *path);

static void apply_option(sim_plan *plan, int option, char *value)
{
  switch (option) {
  case OPT_SEED:
    plan->first = parse_number(value);
    plan->count = 1;
    plan->one = true;
    break;
  case OPT_SEEDS: set_seeds(plan, value); break;
  case OPT_SCENARIO: set_scenario(plan, value); break;
  case OPT_LOCKS: set_lock_mix(plan, value); break;
  case OPT_STYLE: set_style(plan, value); break;
  case OPT_CONDITION: set_condition(plan, value); break;
  case OPT_SERVERS: set_servers(plan, value); break;
  case OPT_ZOOKEEPER: set_version(plan, value); break;
  case OPT_ALL_REQUESTS: plan->choice.all_requests = true; break;
  case OPT_TRACE: plan->trace = true; break;
  case OPT_UNTIL:
    plan->schedule->until_us = (int64_t)parse_number(value) * SIM_MS;
    break;
  case OPT_FAULTS: plan->kept_faults = value; break;
  case OPT_SHRINK: plan->shrink = true; break;
  case OPT_SAVE: plan->save_file = value; break;
  case OPT_SCHEDULE: read_schedule(plan, value); break;
  case OPT_WITHOUT: set_without(plan, value); break;
  case OPT_ALL: plan->keep_going = true; break;
  case OPT_JOBS: plan->jobs = (unsigned)parse_number(value); break;
  case OPT_COVERAGE: plan->coverage = true; break;
  case OPT_LIST: print_list(); exit(EXIT_SUCCESS);
  case OPT_HELP: fputs(help, stdout); exit(EXIT_SUCCESS);
  default: exit_with_usage_error("unknown option");
  }
}

/* Applies an option of a saved schedule; `file` is at its value. */
static void apply_saved_option(sim_plan *plan, const char *word, FILE *file)
{
  const struct option *o = options;
  char value[64] = "";

  while (o->name != NULL && strcmp(word + 2, o->name) != 0)
    o++;
  bool is_fault = strcmp(word, "--fault") == 0;
  bool has_value = is_fault || o->has_arg == required_argument;

  if (o->val == OPT_FAULTS || o->val == OPT_SAVE || o->val == OPT_SCHEDULE)
    exit_with_usage_error("not an option of a schedule");
  if (has_value && fscanf(file, "%63s", value) != 1)
    exit_with_usage_error("a saved option has no value");
  if (!is_fault)
    apply_option(plan, o->val, value);
  else if (!sim_schedule_parse(plan->schedule, value))
    exit_with_usage_error("a saved fault is malformed");
}

static void read_schedule(sim_plan *plan, const char *path)
{
  FILE *file = fopen(path, "r");
  char word[64];

  if (file == NULL)
    exit_with_usage_error("cannot open the schedule");
  while (fscanf(file, "%63s", word) == 1) {
    if (word[0] == '#')
      (void)fscanf(file, "%*[^\n]");
    else if (strncmp(word, "--", 2) == 0)
      apply_saved_option(plan, word, file);
    else
      exit_with_usage_error("not a saved schedule");
  }
  fclose(file);
  plan->schedule_file = path;
}

static void parse_options(sim_plan *plan, int argc, char **argv)
{
  int c;

  while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
    apply_option(plan, c, optarg);
  if (optind < argc || plan->count == 0)
    exit_with_usage_error("--seed, --seeds or --schedule is required");
  if (!plan->one &&
      (plan->kept_faults != NULL || plan->shrink || plan->save_file != NULL))
    exit_with_usage_error("--faults, --shrink and --save are for one seed");
  if (plan->choice.lock_mix != NULL && plan->choice.style != NULL &&
      !sim_lock_style_fits(plan->choice.style, plan->choice.lock_mix))
    exit_with_usage_error("these locks do not support that style");
}

int main(int argc, char **argv)
{
  static sim_schedule schedule; /* too large for the stack */
  sim_plan plan = {
      .jobs = 1, .schedule = &schedule, .choice.schedule = &schedule};

  parse_options(&plan, argc, argv);
  if (plan.kept_faults != NULL && !sim_plan_keep_faults(&plan))
    exit_with_usage_error("--faults: expected numbers, as in 3,7-9, or none");
  if (plan.shrink && !sim_plan_shrink(&plan))
    return EXIT_VIOLATION;
  bool no_violation = plan.one ? sim_report_one(&plan) : sim_report_many(&plan);

  return no_violation ? EXIT_SUCCESS : EXIT_VIOLATION;
}
