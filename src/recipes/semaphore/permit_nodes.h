/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_PERMIT_NODES_H
#define LK_RECIPES_SEMAPHORE_PERMIT_NODES_H

/**
 * @file
 * The permit nodes: which children of a semaphore's directory count, and the
 * nodes of one acquisition.
 */

#include "recipes/semaphore/semaphore_state.h"

/** Find the position of the permit node `own` among the children `names` of the
    directory. All of them count, where `limit` nodes may hold: `predecessors`
   is the number of nodes above the limit. */
void lk__permit_nodes_find_position(lk_queue_position *out, const lk_role *role,
                                    lk_bytes own, const lk_bytes *names,
                                    size_t count, size_t limit);

/** Create all missing permit nodes. */
void lk__permit_nodes_create(lk_semaphore_acquisition *s);
/** Stop and free their contenders. */
void lk__permit_nodes_drop(lk_semaphore_acquisition *s);

#endif
