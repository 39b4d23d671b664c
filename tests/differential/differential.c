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

typedef struct choice {
  uint64_t ops;
  uint64_t seed;
  unsigned servers;
  bool time_passes;
  bool self;
  bool counts;
} choice;

static double now_seconds(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pair *start(const choice *c, const side_config *config,
                   const char *command)
{
  side *real = side_real_new(config);
  side *other =
      c->self ? side_real_new(config) : side_model_new(config, real, c->seed);
  pair *p = pair_new(real, other);

  p->counts.counts = c->counts;
  snprintf(p->recent.command, sizeof p->recent.command,
           "tests/differential/differential --servers %u --seed %" PRIu64
           "%s%s",
           c->servers, c->seed, command, c->self ? " --self" : "");
  return p;
}

static void end(const choice *c, pair *p)
{
  if (c->counts)
    counts_print(&p->counts);
  fflush(stdout);
  pair_free(p);
}

/* Compares random requests. The timeouts are so long that no timer expires. */
static void compare_requests(const choice *c)
{
  /* By the seed, TTLs are enabled either with one server or with three. */
  bool ttls = (c->seed + (c->servers == 1 ? 0 : 1)) % 2 == 1;
  const side_config config = {c->servers, 2000, 40000, 60000, 36000000, ttls};
  char command[40];

  snprintf(command, sizeof command, " --ops %" PRIu64, c->ops);
  pair *p = start(c, &config, command);
  double before = now_seconds();
  uint64_t count = steps_run(p, c->servers, c->seed, c->ops);

  printf("%u server%s, seed %" PRIu64 ": %" PRIu64
         " requests, no difference, %.0f a second\n",
         c->servers, c->servers == 1 ? "" : "s", c->seed, count,
         (double)count / (now_seconds() - before));
  end(c, p);
}

/* Compares what servers do when timers expire. */
static void compare_time_passing(const choice *c)
{
  const side_config config = {c->servers, 500, 2000, 60000, 300, true};
  pair *p = start(c, &config, " --time-passes");

  time_passes_run(p, c->servers);
  printf(
      "%u server%s: containers, TTL nodes and sessions end in the same way\n",
      c->servers, c->servers == 1 ? "" : "s");
  end(c, p);
}

static uint64_t parse_number(const char *text)
{
  char *end;
  uint64_t n = text == NULL ? 0 : strtoull(text, &end, 10);

  if (text == NULL || *text == '\0' || *end != '\0') {
    fprintf(stderr, "differential: expected a parse_number\n");
    exit(2);
  }
  return n;
}

int main(int argc, char **argv)
{
  choice c = {.seed = 1};

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
  for (unsigned servers = 1; servers <= 3; servers += 2) {
    choice one = c;

    if (c.servers != 0 && c.servers != servers)
      continue;
    one.servers = servers;
    if (c.ops == 0)
      one.ops = servers == 1 ? 5000 : 2000;
    if (!c.time_passes)
      compare_requests(&one);
    if (c.time_passes || c.ops == 0)
      compare_time_passing(&one);
  }
  return 0;
}
