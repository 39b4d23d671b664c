/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_LISTING_H
#define LK_RECIPES_QUEUE_QUEUE_LISTING_H

/**
 * @file
 * Listing the queue, and what a list says: the position of the own node.
 */

#include "recipes/queue/contender.h"

/** Request the list of the queue, with a watch if the directory is watched
    instead of the direct predecessor. 0, or why the request was refused. */
int lk__contender_send_list(lk_contender *ct);
/** Begin LISTING_FIRST, in any machine. */
int lk__contender_enter_listing_first(lk_contender *ct,
                                      lk_contender_state from);
/** Begin LISTING, in any machine. */
int lk__contender_enter_listing(lk_contender *ct, lk_contender_state from);
/** A list completed with `err`, after the own node was created. */
void lk__contender_judge_list(lk_contender *ct, int err, const lk_bytes *names,
                              size_t count);
/** Take the position of the own node from a list: wait, grant or fail. */
void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count);
/** The limit of a permit has changed: list again, since the own node may hold
    now. */
void lk__contender_limit_changed(lk_contender *ct);

extern const lk_contender_rules lk__rules_listing_first;
extern const lk_contender_rules lk__rules_listing;

#endif
