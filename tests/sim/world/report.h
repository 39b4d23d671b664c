/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_REPORT_H
#define LK_SIM_WORLD_REPORT_H

#include "sim/world/checker.h"
#include "sim/world/schedule.h"
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
  unsigned conditions;       /**< the conditions that the options name; `choice`
                                points to them */
  sim_schedule *schedule;    /**< time and faults that the options name, if any;
                                `choice` points to it */
  const char *schedule_file; /**< where the faults are listed, or NULL */
  const char *save_file;     /**< gets the schedule of the run, or NULL */
  const char *kept_faults;   /**< their numbers, or NULL: all are kept */
  bool shrink;
  const char *without[SIM_MOST_WITHOUT];
  size_t nwithout;
  bool trace;
  bool keep_going;
  bool coverage;
  unsigned jobs; /**< number of processes */
} sim_plan;

/** Set up a run of the plan. */
void sim_plan_begin(sim_world *w, const sim_plan *plan, uint64_t seed);
/** The first invariant that was violated, of which there must be one. */
size_t sim_first_violated(const sim_world *w);

/** Remove all faults but `kept_faults`. Without a list of faults, the seed is
    run to get one. false: `kept_faults` is malformed. */
bool sim_plan_keep_faults(sim_plan *plan);
/** Shorten the schedule for as long as the same invariant is violated first, or
    the program dies. No effect if neither happens. false: the program dies,
    and that is reported. */
bool sim_plan_shrink(sim_plan *plan);

/** Run a seed, or many, and print a report. false: an invariant was
    violated. */
bool sim_report_one(const sim_plan *plan);
bool sim_report_many(const sim_plan *plan);
/** Report that the program dies in the run of this seed, which another process
    has found. */
void sim_report_death(const sim_plan *plan, uint64_t seed);

#endif
