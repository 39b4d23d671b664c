/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_HOLDING_H
#define LK_RECIPES_QUEUE_HOLDING_H

/**
 * @file
 * The grant, and what follows it: a holder verifies its node and its lease. The
 * states are READING_OWN, CHECKING_OWN, HELD and UNSURE. Contenders of a queue
 * and of a single node are granted and hold alike.
 */

#include "recipes/queue/own_node.h"

/* The grant. Before it, the own node is read if its token is not known, and
   checked if the lease is too short. */

/** No predecessors are left at `now_ms`. Grant if the token is known and the
    lease is long enough; otherwise first read or check the own node. The
    callback `granted` may release the lock and free the client, so `ct` may be
    freed. */
void lk__contender_try_grant(lk_contender *ct, int64_t now_ms);
/** Whether the lease is long enough for a grant at `now_ms`. */
bool lk__contender_lease_suffices(const lk_contender *ct, int64_t now_ms);

extern const lk_contender_rules lk__rules_reading_own;
extern const lk_contender_rules lk__rules_checking_own;

/** The lease deadline; LK_NO_LEASE unless held. */
int64_t lk__contender_deadline(const lk_contender *ct);

/** A check or a read of the own node completed. A contender that does not hold
    is not changed. `ct` may be freed. */
void lk__contender_own_checked(lk_contender *ct, lk_check_result result);
/** The lock is lost: the own node does not exist any more. `ct` may be freed.
 */
void lk__contender_lose(lk_contender *ct, int err);
/** The connection is lost, and the session may still be alive. `ct` may be
    freed. */
void lk__holder_suspend(lk_contender *ct);
/** Read the own node, with a watch if it has none, if a read is due. */
void lk__contender_supervise_own(lk_contender *ct);
/** Switch between HELD and UNSURE as the lease deadline demands. `ct` may be
    freed. */
void lk__contender_review_lease(lk_contender *ct);
/** The lease is too short for the grant that the owner of this held contender
    waits for: renew the lease. LK_NOTICE_LEASE_PROVEN follows when the lease is
    long enough, unless the contender is UNSURE or lost by then. */
void lk__contender_await_lease(lk_contender *ct);
/** The lease is long enough for a grant: notify an owner that awaits it. `ct`
    may be freed. */
void lk__contender_lease_renewed(lk_contender *ct);

extern const lk_contender_rules lk__rules_held;
extern const lk_contender_rules lk__rules_unsure;

#endif
