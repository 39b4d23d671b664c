/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_SCENARIO_H
#define LK_SIM_WORLD_SCENARIO_H

#include "sim/world/faults.h"
#include "sim/world/world.h"

/**
 * What a run is made of: how many there are, and what goes wrong how often.
 * All of it is a table; chance decides within its bounds. 0 is as usual.
 */
struct sim_scenario {
  const char *name;
  const char *text;
  unsigned weight;    /**< how often a seed chooses it */
  bool calm;          /**< nothing is slower than T/4: nobody may be unsure */
  bool churn;         /**< actors hold shortly and want again at once */
  bool hold;          /**< actors hold for long, mostly over T */
  bool news;          /**< in one world of three there are subscribers */
  unsigned assurance; /**< 1 + the only one; 0: any, mostly quorum */
  bool drift;         /**< clocks are 1 % off, and ticks are short */
  int32_t sweep_ms;   /**< of containers; 0: 60,000 */
  unsigned gap_pm;    /**< between faults, thousandths of T; 0: 300 */
  unsigned pieces;    /**< bytes arrive in pieces of this size at most */
  unsigned faults[SIM_NFAULTS]; /**< weights of what goes wrong */
};

extern const sim_scenario sim_scenarios[];
extern const size_t sim_nscenarios;

/** NULL: there is none of that name. */
const sim_scenario *sim_scenario_find(const char *name);
/** The one that a seed chooses. */
const sim_scenario *sim_scenario_of(uint64_t seed);

#endif
