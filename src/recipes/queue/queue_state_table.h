/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H
#define LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H

/**
 * @file
 * The states of contenders that queue by sequence numbers, and of permits.
 */

#include "recipes/queue/contender_states.h"

extern const lk_contender_machine lk__queue_machine;

#endif
