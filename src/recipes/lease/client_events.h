/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_CLIENT_EVENTS_H
#define LK_RECIPES_LEASE_CLIENT_EVENTS_H

/**
 * @file
 * The session lease as a listener of the client: it handles replies, new and
 * lost connections, the expiry of the session, and the close.
 */

#include "recipes/lease/session_lease.h"

/** Attach the session lease to its client as a listener. */
void lk__lease_attach_client(lk_session_lease *lease);

/** Attach and detach the listener of an acquisition. The client notifies this
    listener of each event after it has notified the session lease. */
void lk__lease_attach_listener(lk_session_lease *lease, lk_listener *l);
void lk__lease_detach_listener(lk_session_lease *lease, lk_listener *l);
/** An acquisition has detached its listener, and neither the acquisition nor
    its owner has a timer of the client any more. After the last of these calls
    the session lease may detach itself from a closed client. */
void lk__lease_listener_done(lk_session_lease *lease);

#endif
