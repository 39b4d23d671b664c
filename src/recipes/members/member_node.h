/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_NODE_H
#define LK_RECIPES_MEMBERS_MEMBER_NODE_H

/**
 * @file
 * What is known of the node of a member, and the pauses after losses and
 * errors.
 */

#include "recipes/members/member.h"

/** Subscribe to the node. Returns 0, or an error. */
int lk__membership_watch(lk_membership *m);

/** A request has shown that there is no node of this name. */
void lk__membership_node_missing(lk_membership *m);
/** A request has shown the node. */
void lk__membership_node_seen(lk_membership *m, const lk_stat *stat);
/** A request has completed with `err`, which tells nothing about the node. */
void lk__membership_request_failed(lk_membership *m, int err);

/** Pause before the next request. Returns the length of the pause. */
int64_t lk__membership_pause(lk_membership *m);
/** The same after a loss of the node or of its data: a long time without one
    ends the doubling of pauses. */
void lk__membership_pause_after_loss(lk_membership *m);
/** The same after an error, which is reported, unless it ends the client. */
void lk__membership_retry(lk_membership *m, int err);

#endif
