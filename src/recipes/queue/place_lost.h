/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PLACE_LOST_H
#define LK_RECIPES_QUEUE_PLACE_LOST_H

/**
 * @file
 * What follows when the own node does not exist any more, so that the contender
 * has lost its place in the queue.
 */

#include "recipes/queue/contender.h"

/** The own node was found missing, as `err` says: start anew at the end of the
    queue, or fail with `err` if this happens too often. */
void lk__contender_own_missing(lk_contender *ct, int err);
/** Clear what is known of the own node, which does not exist any more. Replies
    to requests under way are ignored, since the requests were for that node. */
void lk__contender_forget_own(lk_contender *ct);
/** Prepare the create of the next own node: draw its unique part, and watch its
    direct predecessor again if the directory was watched instead. */
void lk__contender_prepare_create(lk_contender *ct);

#endif
