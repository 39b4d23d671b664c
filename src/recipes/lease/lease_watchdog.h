/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_WATCHDOG_H
#define LK_RECIPES_LEASE_LEASE_WATCHDOG_H

/**
 * @file
 * The watchdog: a timer that fires when the lease deadline is near. Then the
 * users of the session lease compare the deadline with the time.
 */

#include "recipes/lease/session_lease.h"

/** A user has begun to hold: start the watchdog so that its `review` is invoked
    when the deadline is near. */
void lk__lease_watch_deadline(lk_session_lease *lease);
/** A user needs a lease that is long enough for a grant: send a heartbeat now.
    When the lease is long enough, `renewed` of all users is invoked. */
void lk__lease_await(lk_session_lease *lease);

/** A reply was received, so the deadline may have changed. */
void lk__watchdog_deadline_moved(lk_session_lease *lease);
/** Invoke `review` of all users in the next turn of the loop, where callbacks
    may be invoked. */
void lk__watchdog_review_soon(lk_session_lease *lease);
/** The callback of `watchdog`; `arg` is the session lease. */
void lk__watchdog_on_timer(lk_client *c, void *arg);

#endif
