/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PLACE_LOST_H
#define LK_RECIPES_QUEUE_PLACE_LOST_H

/**
 * @file
 * The own node does not exist any more, and with it the place in the queue.
 */

#include "recipes/queue/contender.h"

/** The own node does not exist: start anew, at the end of the queue. */
void lk__contender_own_missing(lk_contender *ct, int err);
/** Forget the own node; the replies to requests for it are ignored. */
void lk__contender_forget_own(lk_contender *ct);
/** Give the node of the next create a unique name. */
void lk__contender_prepare_create(lk_contender *ct);

#endif
