/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_PERMIT_NODES_H
#define LK_RECIPES_SEMAPHORE_PERMIT_NODES_H

/**
 * @file
 * The permit nodes: which children of a semaphore's directory count, and the
 * nodes of one acquisition.
 */

#include "recipes/semaphore/semaphore_state.h"

/** Set `out->found` if the permit node `own` is among `names`, the children of
    the permits' directory. `out->predecessors` is the number by which the count
    of children exceeds `limit`. Children of other kinds count as well, and one
    that looks like a queue node of another library is given in
    `out->foreign`. */
void lk__permit_nodes_find_position(lk_queue_position *out, const lk_role *role,
                                    lk_bytes own, const lk_bytes *names,
                                    size_t count, size_t limit);

/** Create the permit nodes that the acquisition does not have yet. */
void lk__permit_nodes_create(lk_semaphore_acquisition *s);
/** Delete all permit nodes of the acquisition: stop and free their contenders.
 */
void lk__permit_nodes_drop(lk_semaphore_acquisition *s);

#endif
