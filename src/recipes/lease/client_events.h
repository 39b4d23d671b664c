/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_CLIENT_EVENTS_H
#define LK_RECIPES_LEASE_CLIENT_EVENTS_H

/**
 * @file
 * What the client reports to the session lease: connections, expiry and close.
 */

#include "recipes/lease/session_lease.h"

/** Listen to the client. */
void lk__lease_attach_client(lk_session_lease *lease);

/** Attach and detach the listener of an acquisition. The client notifies it
    after the session lease. */
void lk__lease_attach_listener(lk_session_lease *lease, lk_listener *l);
void lk__lease_detach_listener(lk_session_lease *lease, lk_listener *l);
/** Called by an acquisition after it has detached its listener, when neither it
    nor its owner has a timer any more. */
void lk__lease_listener_done(lk_session_lease *lease);

#endif
