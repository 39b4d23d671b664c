/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_STEP_H
#define LK_RECIPES_MEMBERS_MEMBER_STEP_H

#include "recipes/members/member.h"

/** Send the next request, if one is due. Returns 0, or why it was refused. */
int lk__membership_step(lk_membership *m);
/** The same; a request that was refused is sent again later. */
void lk__membership_step_or_retry(lk_membership *m);

#endif
