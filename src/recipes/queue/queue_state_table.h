/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H
#define LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H

/**
 * @file
 * The table of all states of a contender in a queue, which is ordered by
 * sequence numbers, or of a permit. Contenders for single-node locks have a
 * table of their own (src/recipes/single).
 */

#include "recipes/queue/contender_states.h"

extern const lk_contender_machine lk__queue_machine;

#endif
