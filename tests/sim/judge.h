/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_JUDGE_H
#define LK_SIM_JUDGE_H

#include "sim/ensemble.h"
#include "sim/process.h"

/**
 * Watches a run and knows what must never be. Each property is a function
 * under the name that stands in judge's table; whatever happens is told to the
 * judge by those who do it, and after each job of the agenda it looks at all
 * that can be looked at. It believes true time and what is committed, not what
 * a client says of itself.
 */
typedef struct sim_judge sim_judge;

/** A property: its name ("MUTEX-EXCLUSION") and a line of text. */
typedef struct sim_property {
  const char *name;
  const char *text;
} sim_property;

extern const sim_property sim_properties[];
extern const size_t sim_nproperties;

sim_judge *sim_judge_new(sim_world *w);
void sim_judge_free(sim_judge *j);
/** Do not look at this one. false: no such name. */
bool sim_judge_without(sim_judge *j, const char *property);
/** After each job. */
void sim_judge_look(sim_judge *j);
/** The faults are over, time has passed, all actors have stopped wanting. */
void sim_judge_calm(sim_judge *j);
/** All clients are freed. */
void sim_judge_end(sim_judge *j);
/** How often `property` was broken; `what`: the first time in words. */
size_t sim_judge_broken(const sim_judge *j, size_t property, const char **what);

#endif
