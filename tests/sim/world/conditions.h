/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CONDITIONS_H
#define LK_SIM_WORLD_CONDITIONS_H

#include "sim/world/faults.h"
#include "sim/world/world.h"

/**
 * Conditions of a run besides its scenario: additional faults, or actors that
 * do more. Half of all seeds have none, the others one or two; besides these,
 * a sixth of all seeds has long lists, a sixth an election, and a sixth a
 * group. Each has its own random generator, so a
 * run without a condition does not depend on it. To add one: a name here, a
 * line in the table of conditions.c, and sim_has_condition() where it has an
 * effect.
 */
typedef enum sim_condition_id {
  SIM_CLOCK_STEPS,
  SIM_TIMEOUTS,
  SIM_CLOSES,
  SIM_WIPES,
  SIM_REFUSALS,
  SIM_ADDRESSES,
  SIM_NARROW,
  SIM_RESUMES,
  SIM_WRITERS,
  SIM_NO_MEMORY,
  SIM_EAGER,
  SIM_LATE_LEASE,
  SIM_IDENTITIES,
  SIM_MANY_READERS,
  SIM_LIMITS,
  SIM_RESTORES,
  SIM_TREES,
  SIM_CHROOTS,
  SIM_READ_ONLY,
  SIM_LONG_LISTS,
  SIM_ELECTIONS,
  SIM_GROUPS,
  SIM_SILENCES,
  SIM_LONG_TIMEOUTS,
  SIM_FEW_SERVERS,
  SIM_SLOW_NAMES,
  SIM_ERRORS,
  SIM_NCONDITIONS
} sim_condition_id;

typedef struct sim_condition {
  const char *name;
  const char *text;
  unsigned weight; /**< of its choice by a seed */
  /** mean time between its faults, in thousandths of T */
  unsigned gap_permille;
  unsigned faults[SIM_NFAULTS]; /**< weights; all 0: no faults */
} sim_condition;

extern const sim_condition sim_conditions[SIM_NCONDITIONS];

/** The bit of a condition in a set of conditions. */
#define SIM_CONDITION(id) (1U << (id))
static inline bool sim_has_condition(const sim_world *w, sim_condition_id id)
{
  return (w->conditions >> id & 1) != 0;
}

/** The bit of that name; 0 for "none". false: no such name. */
bool sim_condition_find(const char *name, unsigned *out);
/** The conditions that a seed chooses. */
unsigned sim_conditions_of(uint64_t seed);
/** Note which faults the scenario and the conditions of the run may inject. */
void sim_note_possible_faults(sim_world *w);
/** Whether the run may inject that fault. */
static inline bool sim_fault_is_possible(const sim_world *w,
                                         enum sim_fault fault)
{
  return (w->possible_faults >> fault & 1) != 0;
}
enum {
  SIM_CONDITIONS_TEXT = 256
}; /**< bytes for the names of many conditions */
/** Write the conditions as options of the program: " --condition NAME" for
    each. */
void sim_conditions_print(unsigned set, char *out, size_t size);

#endif
