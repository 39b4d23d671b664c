/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_RWLOCK_DOWNGRADE_H
#define LK_RECIPES_RWLOCK_DOWNGRADE_H

/**
 * @file
 * The downgrade of a writer: its owner acquires the read side as well.
 */

#include "recipes/queue/contender.h"

/** Make the reader `ct` a downgrade of `writer`, which has the same owner and
    holds. Called before lk__contender_begin(ct). The node of `ct` gets the
    number of the writer's node, and `ct` is granted when it is created. */
void lk__downgrade_set_writer(lk_contender *ct, lk_contender *writer);

#endif
