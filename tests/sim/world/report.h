/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_REPORT_H
#define LK_SIM_WORLD_REPORT_H

#include "sim/world/checker.h"
#include "sim/world/world.h"

/**
 * Runs of the simulation as the command line asks for them, and what is
 * written about them.
 */
enum { SIM_MOST_WITHOUT = 32 };

typedef struct sim_plan {
  uint64_t first; /**< seeds */
  uint64_t count;
  bool one; /**< one seed, of which all is told */
  sim_choice choice;
  unsigned conditions; /**< in `choice`, where they are chosen */
  const char *without[SIM_MOST_WITHOUT];
  size_t nwithout;
  bool trace;
  bool keep_going;
  bool coverage;
  unsigned jobs; /**< processes at a time */
} sim_plan;

/** false: something was found broken. */
bool sim_report_one(const sim_plan *plan);
bool sim_report_many(const sim_plan *plan);

#endif
