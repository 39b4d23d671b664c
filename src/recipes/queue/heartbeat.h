/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_HEARTBEAT_H
#define LK_RECIPES_QUEUE_HEARTBEAT_H

/**
 * @file
 * The heartbeat: the request, or the requests, whose replies prove that the
 * session lives.
 */

#include "recipes/queue/lease.h"

/** Set the need of a user, and start or stop the timer of the heartbeat
    accordingly. */
void lk__heartbeat_set_need(lk_session_lease *lease, lk_contender *ct,
                            lk_lease_need need);
/** Start the timer if a heartbeat is needed, else stop it. The timer is left
    alone if it runs already or a heartbeat is under way. */
void lk__heartbeat_update_timer(lk_session_lease *lease);
/** A lock was granted, and little may be left of its lease: send the next
    heartbeat earlier if necessary. Returns the time at which the lease needs
    the heartbeat, on the client's clock. */
int64_t lk__heartbeat_after_grant(lk_session_lease *lease);
/** Send a heartbeat at once. false: a heartbeat is under way already, or none
    is needed. */
bool lk__heartbeat_now(lk_session_lease *lease);
/** The callback of `lk_heartbeat.timer`; `arg` is the session lease. */
void lk__heartbeat_on_timer(lk_client *c, void *arg);

#endif
