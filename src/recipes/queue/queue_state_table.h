/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H
#define LK_RECIPES_QUEUE_QUEUE_STATE_TABLE_H

#include "recipes/queue/contender_states.h"

/** Contenders that queue by numbers, and permits. */
extern const lk_contender_machine lk__queue_machine;

#endif
