/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_HEARTBEAT_H
#define LK_RECIPES_LEASE_HEARTBEAT_H

/**
 * @file
 * The heartbeat: a request that proves that the session lives.
 */

#include "recipes/lease/session_lease.h"

/** Set the need of a user, and plan the heartbeat by it. */
void lk__lease_set_need(lk_session_lease *lease, lk_lease_user *u,
                        lk_lease_need need);
/** Start the timer if the heartbeat is needed, else stop it. */
void lk__heartbeat_plan(lk_session_lease *lease);
/** A lock was granted, perhaps by a short lease: advance the next heartbeat so
    that it renews the lease in time. Returns when it is due, in ms. */
int64_t lk__heartbeat_granted(lk_session_lease *lease);
/** Another request proved the lease just now: the next heartbeat is sent a
    quarter of the session timeout from now. */
void lk__heartbeat_put_off(lk_session_lease *lease);
/** Send one at once. false: one is under way already, or there is no need. */
bool lk__heartbeat_now(lk_session_lease *lease);
/** The timer has fired. */
void lk__heartbeat_on_timer(lk_client *c, void *arg);

#endif
