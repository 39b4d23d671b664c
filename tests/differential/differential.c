/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Compares the model of ZooKeeper with real servers: random requests of several
 * sessions must get the same replies.
 *
 *     differential [--ops N|--time-passes] [--seed N] [--servers 1|3] [--self]
 *                  [--counts]
 *
 * Without --ops: 5,000 requests to one server, 2,000 to three, and what servers
 * do when time passes (--time-passes: only that). --self compares two sets of
 * real servers, which tests the comparison itself. --counts prints how often
 * each kind of request and reply was compared.
 */

#include "differential/steps.h"
#include "differential/time_passes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct options {
  uint64_t ops; /* 0: not given */
  uint64_t seed;
  unsigned servers; /* 0: not given */
  bool time_passes;
  bool self;
  bool counts;
} options;

static double now_seconds(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pair *new_pair(const options *o, const side_config *config,
                      const char *command)
{
  side *first = side_real_new(config);
  side *second =
      o->self ? side_real_new(config) : side_model_new(config, first, o->seed);
  pair *p = pair_new(first, second);

  p->counts.enabled = o->counts;
  snprintf(p->recent.command, sizeof p->recent.command,
           "tests/differential/differential --servers %u --seed %" PRIu64
           "%s%s",
           o->servers, o->seed, command, o->self ? " --self" : "");
  return p;
}

static void end_comparison(const options *o, pair *p)
{
  if (o->counts)
    counts_print(&p->counts);
  fflush(stdout);
  pair_free(p);
}

/* Compares random requests. The timeouts are so long that no timer expires. */
static void compare_requests(const options *o)
{
  /* With an odd seed, TTLs are enabled with one server and disabled with three;
   * with an even seed, it is the other way round. */
  bool ttls = (o->seed % 2 == 1) == (o->servers == 1);
  const side_config config = {.servers = o->servers,
                              .tick_ms = 2000,
                              .min_timeout_ms = 40000,
                              .max_timeout_ms = 60000,
                              .sweep_ms = 36000000,
                              .ttls = ttls};
  char command[40];

  snprintf(command, sizeof command, " --ops %" PRIu64, o->ops);
  pair *p = new_pair(o, &config, command);
  double before = now_seconds();
  uint64_t count = steps_run(p, o->servers, o->seed, o->ops);

  printf("%u server%s, seed %" PRIu64 ": %" PRIu64
         " requests, no difference, %.0f a second\n",
         o->servers, o->servers == 1 ? "" : "s", o->seed, count,
         (double)count / (now_seconds() - before));
  end_comparison(o, p);
}

/* Compares what servers do when timers expire. */
static void compare_time_passing(const options *o)
{
  const side_config config = {.servers = o->servers,
                              .tick_ms = 500,
                              .min_timeout_ms = 2000,
                              .max_timeout_ms = 60000,
                              .sweep_ms = 300,
                              .ttls = true};
  pair *p = new_pair(o, &config, " --time-passes");

  time_passes_run(p, o->servers);
  printf(
      "%u server%s: containers, TTL nodes and sessions end in the same way\n",
      o->servers, o->servers == 1 ? "" : "s");
  end_comparison(o, p);
}

static uint64_t parse_number(const char *text)
{
  char *end;
  uint64_t n = text == NULL ? 0 : strtoull(text, &end, 10);

  if (text == NULL || *text == '\0' || *end != '\0') {
    fprintf(stderr, "differential: expected a number\n");
    exit(2);
  }
  return n;
}

int main(int argc, char **argv)
{
  options c = {.seed = 1};

  (void)argc;
  for (char **arg = argv + 1; *arg != NULL; arg++) {
    if (strcmp(*arg, "--ops") == 0)
      c.ops = parse_number(*++arg);
    else if (strcmp(*arg, "--seed") == 0)
      c.seed = parse_number(*++arg);
    else if (strcmp(*arg, "--servers") == 0)
      c.servers = parse_number(*++arg) == 3 ? 3 : 1;
    else if (strcmp(*arg, "--self") == 0)
      c.self = true;
    else if (strcmp(*arg, "--time-passes") == 0)
      c.time_passes = true;
    else if (strcmp(*arg, "--counts") == 0)
      c.counts = true;
    else {
      fprintf(stderr, "differential: unknown option %s\n", *arg);
      return 2;
    }
  }
  for (unsigned servers = 1; servers <= 3; servers += 2) { /* 1 and 3 */
    options run = c;

    if (c.servers != 0 && c.servers != servers)
      continue;
    run.servers = servers;
    if (c.ops == 0)
      run.ops = servers == 1 ? 5000 : 2000;
    if (!c.time_passes)
      compare_requests(&run);
    if (c.time_passes || c.ops == 0)
      compare_time_passing(&run);
  }
  return 0;
}
