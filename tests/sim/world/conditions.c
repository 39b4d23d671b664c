/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/conditions.h"

#include "sim/world/scenario.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Times between faults are in thousandths of the session timeout T. */

/* clang-format off */
#define F(name) [SIM_FAULT_##name]

const sim_condition sim_conditions[SIM_NCONDITIONS] = {
  /* a condition with weight 0 is never chosen by a seed, only by --condition */
  [SIM_CLOCK_STEPS] = {.name = "clock-steps", .weight = 2, .gap_permille = 250,
   .text = "time passes between two readings of the clock in one call",
   .faults = {F(CLOCK_STEP) = 1}},
  [SIM_TIMEOUTS] = {.name = "timeouts", .weight = 1, .gap_permille = 700,
   .text = "servers grant shorter and longer session timeouts after a restart",
   .faults = {F(BOUNDS) = 1}},
  [SIM_CLOSES] = {.name = "closes", .weight = 1, .gap_permille = 1500,
   .text = "processes close their clients and free them then or later",
   .faults = {F(CLOSE) = 1}},
  [SIM_WIPES] = {.name = "wipes", .weight = 1, .gap_permille = 5000,
   .text = "the ensemble is wiped, or another one replaces it",
   .faults = {F(WIPE) = 1}},
  [SIM_REFUSALS] = {.name = "refusals", .weight = 1, .gap_permille = 500,
   .text = "servers close after the handshake, throttle setWatches, or are of an older version",
   .faults = {F(CLOSE_EARLY) = 2, F(THROTTLE_WATCHES) = 1, F(OLDER) = 2}},
  [SIM_ADDRESSES] = {.name = "addresses", .weight = 1, .gap_permille = 500,
   .text = "names have several addresses, and nothing answers at some of them",
   .faults = {F(ADDRESSES) = 3, F(CUT) = 2, F(SERVER_CRASH) = 1}},
  [SIM_NARROW] = {.name = "narrow", .weight = 1, .gap_permille = 1000,
   .text = "routes have a limited bandwidth, and one node is large",
   .faults = {F(NARROW) = 1}},
  [SIM_RESUMES] = {.name = "resumes", .weight = 1, .gap_permille = 1000,
   .text = "processes die, and others resume their sessions for a while",
   .faults = {F(RESUME) = 1}},
  [SIM_WRITERS] = {.name = "writers", .weight = 1, .gap_permille = 400,
   .text = "reliable writes; clients give up their sessions soon",
   .faults = {F(CUT_AT) = 6, F(HALF) = 1, F(LATE_WRITE) = 2, F(PARTITION) = 1}},
  [SIM_NO_MEMORY] = {.name = "no-memory", .weight = 1, .gap_permille = 200,
   .text = "allocations of clients fail at random",
   .faults = {F(STARVE) = 1}},
  [SIM_EAGER] = {.name = "eager", .weight = 1, .gap_permille = 200,
   .text = "drivers connect and send from the hook that wakes them",
   .faults = {F(EAGER) = 4, F(HOSTS) = 1, F(CUT) = 2}},
  [SIM_LATE_LEASE] = {.name = "late-lease", .weight = 1,
   .text = "session leases are made with the first lock, long after the client"},
  [SIM_IDENTITIES] = {.name = "identities", .weight = 1, .gap_permille = 400,
   .text = "clients add identities at any time, also without a connection",
   .faults = {F(CUT) = 2, F(CUT_AT) = 3, F(HOSTS) = 1, F(EXPIRE) = 1}},
  [SIM_MANY_READERS] = {.name = "crowd", .weight = 0, .gap_permille = 1000,
   .text = "one process has many readers, and a low limit of request sizes",
   .faults = {F(CUT) = 2, F(DELETE_NODE) = 1}},
  [SIM_LIMITS] = {.name = "limits", .weight = 1, .gap_permille = 1000,
   .text = "limits and times of clients and session leases are not the defaults",
   .faults = {F(PARTITION) = 1, F(CUT) = 1}},
  [SIM_RESTORES] = {.name = "restores", .weight = 1, .gap_permille = 5000,
   .text = "the ensemble is restored from an older snapshot",
   .faults = {F(RESTORE) = 1}},
  [SIM_TREES] = {.name = "trees", .weight = 1, .gap_permille = 400,
   .text = "nodes are created with their parents, and trees are deleted",
   .faults = {F(CUT_AT) = 4, F(CUT) = 1, F(THROTTLE) = 1}},
  [SIM_CHROOTS] = {.name = "chroots", .weight = 1, .gap_permille = 700,
   .text = "clients have different chroots that name the same nodes",
   .faults = {F(CUT_AT) = 2, F(CUT) = 1, F(HOSTS) = 1}},
  [SIM_READ_ONLY] = {.name = "read-only", .weight = 1, .gap_permille = 700,
   .text = "servers without a quorum become read-only, and clients accept them",
   .faults = {F(LEADER_CUT) = 2, F(FOLLOWER_CUT) = 3, F(PARTITION) = 2,
              F(EXPIRE) = 2, F(CRASH) = 2}},
  [SIM_LONG_LISTS] = {.name = "long-lists", .weight = 0, .gap_permille = 1000,
   .text = "directories of locks have many nodes of no contender",
   .faults = {F(LONG_LIST) = 1}},
  [SIM_ELECTIONS] = {.name = "elections", .weight = 0, .gap_permille = 700,
   .text = "each process has a candidate of one election",
   .faults = {F(CUT_AT) = 3, F(CUT) = 1, F(EXPIRE) = 1, F(PARTITION) = 1}},
  [SIM_GROUPS] = {.name = "groups", .weight = 0, .gap_permille = 700,
   .text = "each process has a member of one group",
   .faults = {F(CUT_AT) = 3, F(CUT) = 1, F(EXPIRE) = 1, F(CRASH) = 1}},
  [SIM_SILENCES] = {.name = "silences", .weight = 0, .gap_permille = 900,
   .text = "servers do not reply, or all stand still for a while",
   .faults = {F(STALL) = 3, F(MUTE) = 3, F(SERVER_STOP) = 2}},
  [SIM_LONG_TIMEOUTS] = {.name = "long-timeouts", .weight = 0,
   .text = "session timeouts are 6 to 40 s"},
  [SIM_FEW_SERVERS] = {.name = "few-servers", .weight = 0,
   .text = "there are one or two servers"},
  [SIM_SLOW_NAMES] = {.name = "slow-names", .weight = 0, .gap_permille = 1500,
   .text = "lookups of names take up to 2 T for a while, and connections break",
   .faults = {F(SLOW_LOOKUPS) = 1, F(CUT) = 1}},
  [SIM_ERRORS] = {.name = "errors", .weight = 0, .gap_permille = 400,
   .text = "any request may be refused by a server in trouble",
   .faults = {F(ERRORS) = 4, F(CUT_AT) = 1}},
};
/* clang-format on */

enum { NO_CONDITIONS = 0 }; /* the empty set */

bool sim_condition_find(const char *name, unsigned *out)
{
  *out = NO_CONDITIONS;
  for (unsigned i = 0; i < SIM_NCONDITIONS; i++) {
    if (strcmp(sim_conditions[i].name, name) == 0)
      *out = SIM_CONDITION(i);
  }
  return *out != NO_CONDITIONS || strcmp(name, "none") == 0;
}

static unsigned random_condition_by_weight(sim_rng *r)
{
  uint32_t sum = 0;
  unsigned i = 0;

  for (size_t k = 0; k < SIM_NCONDITIONS; k++)
    sum += sim_conditions[k].weight;
  /* finds the weight at a random point, as if all weights lay in a row */
  for (uint32_t point = sim_roll(r, sum); point >= sim_conditions[i].weight;
       i++)
    point -= sim_conditions[i].weight;
  return SIM_CONDITION(i);
}

static unsigned random_conditions(sim_rng *r)
{
  if (sim_one_in(r, 2))
    return NO_CONDITIONS;
  unsigned set = random_condition_by_weight(r);

  if (sim_one_in(r, 3))
    set |= random_condition_by_weight(r);
  return set;
}

unsigned sim_conditions_of(uint64_t seed)
{
  sim_rng root = {seed};
  sim_rng r = sim_rng_fork(&root, 'c');
  sim_rng list = sim_rng_fork(&root, 'g');
  sim_rng silence = sim_rng_fork(&root, 'm');
  sim_rng world = sim_rng_fork(&root, 'v');
  unsigned set = random_conditions(&r);

  if (sim_one_in(&list, 6))
    set |= SIM_CONDITION(SIM_LONG_LISTS);
  if (sim_one_in(&list, 6))
    set |= SIM_CONDITION(SIM_ELECTIONS);
  if (sim_one_in(&list, 6))
    set |= SIM_CONDITION(SIM_GROUPS);
  if (sim_one_in(&silence, 6))
    set |= SIM_CONDITION(SIM_SILENCES);
  if (sim_one_in(&world, 8))
    set |= SIM_CONDITION(SIM_LONG_TIMEOUTS);
  if (sim_one_in(&world, 12))
    set |= SIM_CONDITION(SIM_FEW_SERVERS);
  if (sim_one_in(&world, 8))
    set |= SIM_CONDITION(SIM_SLOW_NAMES);
  if (sim_one_in(&world, 8))
    set |= SIM_CONDITION(SIM_ERRORS);
  return set;
}

static_assert(SIM_NFAULTS <= 64, "sim_world.possible_faults has 64 bits");

static uint64_t bits_of(const unsigned weights[SIM_NFAULTS])
{
  uint64_t bits = 0;

  for (unsigned fault = 0; fault < SIM_NFAULTS; fault++) {
    if (weights[fault] > 0)
      bits |= UINT64_C(1) << fault;
  }
  return bits;
}

void sim_note_possible_faults(sim_world *w)
{
  w->possible_faults = bits_of(w->scenario->faults);
  for (unsigned i = 0; i < SIM_NCONDITIONS; i++) {
    if (sim_has_condition(w, (sim_condition_id)i))
      w->possible_faults |= bits_of(sim_conditions[i].faults);
  }
}

void sim_conditions_print(unsigned set, char *out, size_t size)
{
  size_t at = 0;

  if (set == NO_CONDITIONS)
    snprintf(out, size, " --condition none");
  for (unsigned i = 0; i < SIM_NCONDITIONS && at < size; i++) {
    if ((set >> i & 1) != 0)
      at += (size_t)snprintf(out + at, size - at, " --condition %s",
                             sim_conditions[i].name);
  }
}
