/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/scenario.h"

#include <string.h>

/* Times between faults are in thousandths of the session timeout T. With
 * `churn` actors hold for a short time, with `hold` mostly longer than T. */

/* clang-format off */
#define F(name) [SIM_FAULT_##name]

const sim_scenario sim_scenarios[] = {
  {.name = "calm", .weight = 2, .calm = true, .gap_permille = 1100,
   .text = "no delay is above a quarter of the timeout",
   .faults = {F(DELAY) = 6, F(PIECES) = 1, F(CUT) = 2, F(SET_NODE) = 1, F(FOREIGN) = 1}},
  {.name = "storm", .weight = 4, .subscribers = true, .gap_permille = 200,
   .text = "most faults at once",
   .faults = {F(DELAY) = 2, F(PIECES) = 1, F(CUT) = 4, F(CUT_AT) = 6,
              F(HALF) = 2, F(PARTITION) = 2, F(PROXY) = 1, F(PAUSE) = 4,
              F(CRASH) = 2, F(LEAVE) = 1, F(SERVER_CRASH) = 2,
              F(SERVER_STOP) = 1, F(RESTARTS) = 1, F(FOLLOWER_CUT) = 1,
              F(LEADER_CUT) = 1, F(DEPOSED) = 1, F(LAG) = 2,
              F(LATE_WRITE) = 4, F(THROTTLE) = 2, F(DELETE_NODE) = 2,
              F(DELETE_ALL) = 1, F(SET_NODE) = 2, F(FOREIGN) = 1,
              F(EXPIRE) = 1}},
  {.name = "cuts", .weight = 4, .gap_permille = 150, .churn = true,
   .text = "connections break at any byte",
   .faults = {F(CUT_AT) = 10, F(CUT) = 2, F(PIECES) = 1, F(LAG) = 1}},
  {.name = "pieces", .weight = 1, .subscribers = true, .pieces = 30,
   .text = "bytes arrive in small pieces, and connections break",
   .faults = {F(CUT_AT) = 4, F(DELAY) = 1, F(THROTTLE) = 1}},
  {.name = "silence", .weight = 2, .subscribers = true,
   .text = "half-open connections, partitions, proxies that never answer",
   .faults = {F(HALF) = 4, F(PARTITION) = 3, F(PROXY) = 2, F(DELAY) = 1,
              F(CUT) = 2}},
  {.name = "follower-cut", .weight = 3, .gap_permille = 1000, .hold = true,
   .text = "followers are cut off from their leader and still answer clients",
   .faults = {F(FOLLOWER_CUT) = 5, F(CUT) = 2, F(LAG) = 1, F(PAUSE) = 1,
              F(DELAY) = 2}},
  {.name = "drift", .weight = 2, .gap_permille = 1500, .hold = true, .drift = true,
   .text = "followers are cut off, and clocks are 1 % off",
   .faults = {F(FOLLOWER_CUT) = 5, F(LEADER_CUT) = 1, F(CUT) = 1}},
  {.name = "leader-cut", .weight = 2, .subscribers = true,
   .text = "the leader is cut off, and another is elected",
   .faults = {F(LEADER_CUT) = 5, F(CUT) = 2, F(CUT_AT) = 2, F(LAG) = 1}},
  {.name = "deposed-leader", .weight = 3, .gap_permille = 1200, .hold = true,
   .text = "a deposed leader still answers one of the processes",
   .faults = {F(DEPOSED) = 5, F(CUT) = 2, F(PAUSE) = 1}},
  {.name = "pauses", .weight = 3, .gap_permille = 200,
   .text = "processes are paused, for less and for more than T",
   .faults = {F(PAUSE) = 8, F(CUT) = 1, F(DELAY) = 1}},
  {.name = "crashes", .weight = 3, .gap_permille = 250, .churn = true,
   .text = "processes die at any time and start again",
   .faults = {F(CRASH) = 6, F(LEAVE) = 2, F(CUT_AT) = 2, F(DELAY) = 1}},
  {.name = "expiry", .weight = 2,
   .text = "an operator ends sessions",
   .faults = {F(EXPIRE) = 6, F(CUT) = 2, F(CUT_AT) = 1, F(PAUSE) = 1}},
  {.name = "operator", .weight = 3, .gap_permille = 200,
   .text = "an operator deletes and changes nodes",
   .faults = {F(DELETE_NODE) = 8, F(DELETE_ALL) = 2, F(SET_NODE) = 3,
              F(FOREIGN) = 2, F(CUT_AT) = 2, F(LAG) = 1}},
  {.name = "containers", .weight = 2, .sweep_ms = 300, .churn = true,
   .text = "empty containers are deleted every 300 ms",
   .faults = {F(DELETE_ALL) = 1, F(CUT_AT) = 4, F(DELAY) = 1, F(CUT) = 1}},
  {.name = "throttle", .weight = 2, .gap_permille = 150,
   .text = "any request may be answered THROTTLED",
   .faults = {F(THROTTLE) = 8, F(CUT_AT) = 2, F(DELETE_NODE) = 1}},
  {.name = "acl", .weight = 1, .gap_permille = 800,
   .text = "an operator takes permissions away and grants them again",
   .faults = {F(DENY) = 5, F(CUT_AT) = 2, F(CUT) = 1, F(DELETE_ALL) = 2,
              F(EXPIRE) = 1}},
  {.name = "counter-end", .weight = 1,
   .text = "sequence counters overflow",
   .faults = {F(COUNTER) = 2, F(CUT_AT) = 3, F(DELAY) = 2}},
  {.name = "late-writes", .weight = 4, .gap_permille = 200, .churn = true,
   .text = "writes commit after their client has reconnected elsewhere",
   .faults = {F(LATE_WRITE) = 8, F(LAG) = 3, F(CUT_AT) = 2}},
  {.name = "restarts", .weight = 2, .subscribers = true,
   .text = "servers are restarted one after the other, and crash",
   .faults = {F(RESTARTS) = 3, F(SERVER_CRASH) = 3, F(SERVER_STOP) = 2,
              F(CUT_AT) = 1}},
  /* chosen by a random generator of its own; see sim_scenario_of() */
  {.name = "one-silent", .weight = 0, .one_silent = true, .hold = true,
   .gap_permille = 3500,
   .text = "one follower falls silent, and later another one",
   .faults = {F(ONE_SILENT) = 1}},
  /* these have weight 0 and are run only by --scenario, so that each seed still
   * chooses the same scenario as before they were added */
  {.name = "moves", .weight = 0, .subscribers = true, .gap_permille = 150, .churn = true,
   .text = "lists of servers change, and clients move",
   .faults = {F(HOSTS) = 10, F(CUT_AT) = 2, F(CUT) = 1, F(LAG) = 2,
              F(DELAY) = 1, F(LATE_WRITE) = 2, F(DELETE_NODE) = 1}},
  {.name = "slow", .weight = 0, .gap_permille = 150,
   .text = "connections are delayed, some of them a lot",
   .faults = {F(DELAY) = 10, F(CUT) = 1}},
};
/* clang-format on */
const size_t sim_nscenarios = sizeof sim_scenarios / sizeof sim_scenarios[0];

const sim_scenario *sim_scenario_find(const char *name)
{
  for (size_t i = 0; i < sim_nscenarios; i++) {
    if (strcmp(sim_scenarios[i].name, name) == 0)
      return &sim_scenarios[i];
  }
  return NULL;
}

const sim_scenario *sim_scenario_of(uint64_t seed)
{
  sim_rng r = {seed};
  sim_rng own = sim_rng_fork(&r, 'o');
  uint32_t sum = 0;

  if (sim_one_in(&own, 16))
    return sim_scenario_find("one-silent");

  for (size_t i = 0; i < sim_nscenarios; i++)
    sum += sim_scenarios[i].weight;
  uint32_t point = sim_roll(&r, sum); /* in all weights, as in a row */

  for (size_t i = 0;; i++) {
    if (point < sim_scenarios[i].weight)
      return &sim_scenarios[i];
    point -= sim_scenarios[i].weight;
  }
}
