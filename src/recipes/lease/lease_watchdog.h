/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_WATCHDOG_H
#define LK_RECIPES_LEASE_LEASE_WATCHDOG_H

/**
 * @file
 * The timer of the lease deadline. When it fires, users compare the deadline
 * with the time.
 */

#include "recipes/lease/session_lease.h"

/** A user holds: invoke its `review` when the deadline is near. */
void lk__lease_watch_deadline(lk_session_lease *lease);
/** A user needs a lease that is long enough for a grant: renew it. `renewed` of
    all users follows. */
void lk__lease_await(lk_session_lease *lease);

/** A reply has come: the deadline may have moved. */
void lk__watchdog_deadline_moved(lk_session_lease *lease);
/** Invoke `review` of all users in the next turn of the loop, where callbacks
   may be invoked. */
void lk__watchdog_review_soon(lk_session_lease *lease);
/** The timer has fired. */
void lk__watchdog_on_timer(lk_client *c, void *arg);

#endif
