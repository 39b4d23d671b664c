/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_COVERAGE_H
#define LK_SIM_COVERAGE_H

#include "recipes/contend.h"

#include <stdio.h>

/**
 * Which states and steps of the recipe machine, and which changes of a
 * session's state, have happened in any run of this program.
 */

void sim_coverage_step(lk_contend_event ev, lk_contend_state from);
void sim_coverage_session(lk_state from, lk_state to);
/** Write how much was seen, and by name what was not. */
void sim_coverage_tell(FILE *out);
/** What a child process has seen, as bytes for its parent; and add them. */
size_t sim_coverage_size(void);
void sim_coverage_save(void *out);
void sim_coverage_add(const void *saved);

#endif
