/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_MACHINE_H
#define LK_RECIPES_QUEUE_QUEUE_MACHINE_H

#include "recipes/queue/states.h"

/** Contenders that queue by numbers, and permits. */
extern const lk_contender_machine lk__queue_machine;

#endif
