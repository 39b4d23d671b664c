/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_HOLDING_H
#define LK_RECIPES_QUEUE_HOLDING_H

/**
 * @file
 * The grant, and what a holder does: verify its node and its lease. Contenders
 * of a queue and of a single node hold alike.
 */

#include "recipes/queue/contender.h"

/** The result of a check of the own node. */
typedef enum lk_check_result {
  LK_CHECK_UNKNOWN, /**< the check was not executed, as far as is known */
  LK_CHECK_EXISTS,
  LK_CHECK_MISSING
} lk_check_result;

/** By the error of a check, a read or a write of the node. A server
    looks for the node before it checks the permission, so LK_ERR_NO_AUTH means
    that the node exists. */
lk_check_result lk__check_result_of(int err);
/** The same, for the own node: where names are not unique, the node of that
    name can be another client's. */
lk_check_result lk__contender_check_result(const lk_contender *ct, int err);
/** Send a check of the own node, which proves that it exists and renews the
    lease. 0, or why it was refused. */
int lk__contender_check_own(lk_contender *ct, lk_multi_cb done);

/** No predecessors are left at `now_ms`: grant, or first read or check the own
    node. */
void lk__contender_try_grant(lk_contender *ct, int64_t now_ms);
/** Whether the lease is long enough for a grant at `now_ms`. */
bool lk__contender_lease_suffices(const lk_contender *ct, int64_t now_ms);

/* HELD and UNSURE: */

/** A check or a read of the own node completed. */
void lk__contender_own_checked(lk_contender *ct, lk_check_result result);
/** The lock is lost: the own node does not exist any more. */
void lk__contender_lose(lk_contender *ct, int err);
/** The connection is lost. */
void lk__holder_suspend(lk_contender *ct);
/** Read and watch the own node if that is due. */
void lk__contender_supervise_own(lk_contender *ct);
/** Switch between HELD and UNSURE as the lease deadline demands. */
void lk__contender_review_lease(lk_contender *ct);
/** HELD, but its owner cannot be granted what it acquires, since the lease is
    too short: renew the lease. LK_NOTICE_LEASE_PROVEN follows, unless the
    contender is UNSURE or lost by then. */
void lk__contender_await_lease(lk_contender *ct);
/** The lease is long enough: notify the owner that awaits it. */
void lk__contender_lease_renewed(lk_contender *ct);

#endif
