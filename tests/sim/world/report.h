/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_REPORT_H
#define LK_SIM_WORLD_REPORT_H

#include "sim/world/checker.h"
#include "sim/world/world.h"

/**
 * Runs of the simulation as the command line selects them, and their output.
 */
enum { SIM_MOST_WITHOUT = 32 };

typedef struct sim_plan {
  uint64_t first; /**< first seed */
  uint64_t count;
  bool one; /**< a single seed, reported in full */
  sim_choice choice;
  unsigned conditions; /**< the conditions that the options name; `choice`
                          points to them */
  const char *without[SIM_MOST_WITHOUT];
  size_t nwithout;
  bool trace;
  bool keep_going;
  bool coverage;
  unsigned jobs; /**< number of processes */
} sim_plan;

/** Run a seed, or many, and print a report. false: an invariant was
    violated. */
bool sim_report_one(const sim_plan *plan);
bool sim_report_many(const sim_plan *plan);

#endif
