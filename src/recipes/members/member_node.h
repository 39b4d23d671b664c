/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_NODE_H
#define LK_RECIPES_MEMBERS_MEMBER_NODE_H

/**
 * @file
 * The node of a member: creating, watching, writing and deleting it.
 */

#include "recipes/members/member.h"

/** Send the next request, if one is due. Returns 0, or why it was refused. */
int lk__membership_step(lk_membership *m);
/** The same; a request that was refused is sent again later. */
void lk__membership_step_or_retry(lk_membership *m);
/** Pause before the next request. Returns the length of the pause. */
int64_t lk__membership_pause(lk_membership *m);
/** The same after a loss: a long membership ends the doubling of pauses. */
void lk__membership_pause_after_loss(lk_membership *m);

#endif
