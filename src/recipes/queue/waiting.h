/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_WAITING_H
#define LK_RECIPES_QUEUE_WAITING_H

/**
 * @file
 * Waiting for the predecessors.
 */

#include "recipes/queue/contender.h"

/** A read completed: continue if it was the last of its round. */
void lk__contender_judge_if_all_read(lk_contender *ct);

#endif
