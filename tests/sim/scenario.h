/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_SCENARIO_H
#define LK_SIM_SCENARIO_H

#include "sim/faults.h"
#include "sim/world.h"

/**
 * What a run is made of: how many there are, how long it takes, and what goes
 * wrong how often. All of it is a table; chance decides within its bounds.
 */
struct sim_scenario {
  const char *name;
  const char *text;
  unsigned weight;     /**< how often a seed chooses it */
  bool calm;           /**< nothing is slower than T/4: nobody may be unsure */
  bool meddled;        /**< somebody deletes nodes and ends sessions */
  bool churn;          /**< actors hold shortly and want again at once */
  unsigned assurance;  /**< 1 + the only one; 0: any, mostly quorum */
  unsigned servers[2]; /**< least and most; 0: 3 to 5 */
  unsigned locks[2];   /**< 0: 1 to 2 */
  int32_t tick_ms[2];  /**< 0: 500 to 1,000 */
  int32_t sweep_ms;    /**< of containers; 0: 60,000 */
  int32_t drift_ppm;   /**< of a clock, at most; 0: 10,000, which is 1 % */
  int32_t counter;     /**< of sequence numbers, at first */
  unsigned gap_pm;     /**< between faults, in thousandths of T; 0: 300 */
  unsigned faults[SIM_NFAULTS]; /**< weights of what goes wrong */
};

extern const sim_scenario sim_scenarios[];
extern const size_t sim_nscenarios;

/** NULL: there is none of that name. */
const sim_scenario *sim_scenario_find(const char *name);
/** The one that a seed chooses. */
const sim_scenario *sim_scenario_of(uint64_t seed);

#endif
