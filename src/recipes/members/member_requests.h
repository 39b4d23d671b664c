/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_REQUESTS_H
#define LK_RECIPES_MEMBERS_MEMBER_REQUESTS_H

#include "recipes/members/member.h"

/**
 * @file
 * The requests for the node of a member. Each function returns 0, or why the
 * request was refused. After the reply, lk_membership.step is called.
 */

int lk__membership_create_node(lk_membership *m);
/** Find out whether the node exists, and whose it is. */
int lk__membership_look(lk_membership *m);
/** Write the data, or delete the node, which must be the own one. */
int lk__membership_write_data(lk_membership *m);
int lk__membership_delete_node(lk_membership *m);

#endif
