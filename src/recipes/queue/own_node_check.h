/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CHECK_H
#define LK_RECIPES_QUEUE_OWN_NODE_CHECK_H

/**
 * @file
 * Checks of the own node (the operation `check` of a multi).
 */

#include "recipes/queue/contender.h"

/** The result of a check of the own node. */
typedef enum lk_check_result {
  LK_CHECK_UNKNOWN, /**< the check was not executed, as far as is known */
  LK_CHECK_EXISTS,
  LK_CHECK_MISSING
} lk_check_result;

/** What the error of a check, a read or a write says about the node. A server
    looks for the node before it checks the permission, so LK_ERR_NO_AUTH means
    that the node exists. */
lk_check_result lk__check_result_of(int err);
/** What that error says about the own node of `ct`. If its name is not unique,
    the existing node may be another client's: then LK_CHECK_UNKNOWN. */
lk_check_result lk__contender_check_result(const lk_contender *ct, int err);
/** Send a check of the own node, which proves that it exists and renews the
    lease. 0, or why it was refused. */
int lk__contender_check_own(lk_contender *ct, lk_multi_cb done);

#endif
