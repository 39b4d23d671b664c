/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CONDITIONS_H
#define LK_SIM_WORLD_CONDITIONS_H

#include "sim/world/faults.h"
#include "sim/world/world.h"

/**
 * What a world has beside its scenario: faults of its own that strike among
 * those of the scenario, and programs that do more. Half of all seeds have
 * none, the others one or two. They have draws of their own, so that a world
 * without one is the same as if that condition did not exist. To add one: here,
 * in the table of conditions.c, and where sim_has_condition() asks for it.
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
  SIM_NCONDITIONS
} sim_condition_id;

typedef struct sim_condition {
  const char *name;
  const char *text;
  unsigned weight;              /**< how often a seed chooses it */
  unsigned gap_pm;              /**< between its faults, thousandths of T */
  unsigned faults[SIM_NFAULTS]; /**< weights; all 0: it has none */
} sim_condition;

extern const sim_condition sim_conditions[SIM_NCONDITIONS];

/** A set of conditions, a bit each. */
#define SIM_CONDITION(id) (1U << (id))
static inline bool sim_has_condition(const sim_world *w, sim_condition_id id)
{
  return (w->conditions >> id & 1) != 0;
}

/** The bit of that name, 0 for "none"; false: there is none of that name. */
bool sim_condition_find(const char *name, unsigned *out);
/** Those that a seed chooses. */
unsigned sim_conditions_of(uint64_t seed);
/** Whether the world's scenario or one of its conditions has that fault. */
bool sim_fault_is_possible(const sim_world *w, enum sim_fault fault);
enum { SIM_CONDITIONS_TEXT = 96 }; /**< bytes for the names of some */
/** Write their names with " --condition " before each, as the program takes
    them. */
void sim_conditions_print(unsigned set, char *out, size_t size);

#endif
