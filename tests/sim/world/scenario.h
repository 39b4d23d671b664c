/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_SCENARIO_H
#define LK_SIM_WORLD_SCENARIO_H

#include "sim/world/faults.h"
#include "sim/world/world.h"

/**
 * A scenario: the faults of a run with their weights, and bounds within which
 * the seed chooses. 0 selects the default.
 */
struct sim_scenario {
  const char *name;
  const char *text;
  unsigned weight; /**< of its choice by a seed */
  bool calm;       /**< no delay is above T/4, so no holder may become unsure */
  bool churn; /**< actors hold for a short time and acquire again at once */
  bool hold;  /**< actors hold for long, mostly over T */
  bool one_silent;  /**< no fault but that one follower is silent, at times that
                       are far apart: no holder may become unsure */
  bool subscribers; /**< one run of three has subscribers */
  bool drift; /**< clocks are 1 % off, and the session timeout is 20 ticks */
  int32_t sweep_ms; /**< interval of deleting empty containers; 0: 60,000 */
  /** mean time between faults, in thousandths of T; 0: 300 */
  unsigned gap_permille;
  unsigned pieces; /**< maximum size of pieces in which bytes arrive; 0: any */
  unsigned faults[SIM_NFAULTS]; /**< weights of the faults */
};

extern const sim_scenario sim_scenarios[];
extern const size_t sim_nscenarios;

/** The scenario of that name; NULL: there is none. */
const sim_scenario *sim_scenario_find(const char *name);
/** The scenario that a seed chooses. */
const sim_scenario *sim_scenario_of(uint64_t seed);

#endif
