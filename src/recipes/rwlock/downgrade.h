/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_RWLOCK_DOWNGRADE_H
#define LK_RECIPES_RWLOCK_DOWNGRADE_H

/**
 * @file
 * The read node of a writer.
 */

#include "recipes/queue/contender.h"

/** Before lk__contender_begin(): `writer`, of the same owner, holds. The own
    node of `ct` is created with its number, and granted at once. */
void lk__downgrade_set_writer(lk_contender *ct, lk_contender *writer);

#endif
