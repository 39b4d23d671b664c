/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_DOWNGRADE_H
#define LK_RECIPES_QUEUE_DOWNGRADE_H

/**
 * @file
 * The read node of a writer.
 */

#include "recipes/queue/contender.h"

/** Before lk__contender_begin(): `writer`, of the same owner, holds. The own
    node is created with its number, and granted at once. */
void lk__contender_set_writer(lk_contender *ct, lk_contender *writer);
/** Begin CREATING where the writer holds. 0, or why the request was
    refused. */
int lk__contender_create_downgraded(lk_contender *ct);

#endif
