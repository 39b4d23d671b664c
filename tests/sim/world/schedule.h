/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_SCHEDULE_H
#define LK_SIM_WORLD_SCHEDULE_H

#include "sim/world/faults.h"

#include <stdio.h>

/**
 * The faults of a run as a list. A run records them. A run that is given a list
 * injects these faults in place of random ones, so single faults can be left
 * out, and the list stays the same when weights, scenarios or the order of
 * draws change.
 */
typedef struct sim_listed_fault {
  int64_t at_us;
  enum sim_fault kind;
  uint64_t draws;  /**< state of the generator from which the injector draws its
                      process, server, duration, … */
  unsigned number; /**< in the first list, from 1 on */
} sim_listed_fault;

enum { SIM_MOST_LISTED_FAULTS = 4000 };

struct sim_schedule {
  int64_t until_us; /**< end of the phase with faults; 0: chosen by the seed */
  bool is_listed;   /**< the faults are those below; false: random ones */
  size_t count;
  sim_listed_fault faults[SIM_MOST_LISTED_FAULTS];
};

/** Add a fault at the end. No effect if the list is full. */
void sim_schedule_add(sim_schedule *s, int64_t at_us, enum sim_fault kind,
                      uint64_t draws);
/** Add a fault as sim_schedule_print() writes it. false: malformed. */
bool sim_schedule_parse(sim_schedule *s, const char *text);
/** Keep the faults with these numbers, as in "3,7-9", or "none". false:
    malformed. */
bool sim_schedule_keep(sim_schedule *s, const char *numbers);
/** Remove `count` faults from the one with that index on. */
void sim_schedule_remove(sim_schedule *s, size_t index, size_t count);
/** Print the numbers of the faults, as sim_schedule_keep() reads them. */
void sim_schedule_print_numbers(const sim_schedule *s, FILE *out);
/** Print the schedule as options of the program, one a line. */
void sim_schedule_print(const sim_schedule *s, FILE *out);

#endif
