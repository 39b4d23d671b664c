/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_DRIVER_H
#define LK_NET_CONNECTION_DRIVER_H

#include "net/connection.h"

/** NULL: no memory. The one reference is the caller's, for the client to come.
 */
lk_connection *lk__connection_new(lk_driver_shared *x);
/** Choose the transport that its client's options ask for.
    LK_ERR_NO_MEMORY, LK_ERR_UNIMPLEMENTED. */
int lk__connection_init_transport(lk_connection *n);
/** The client is gone, or was never made: close, and drop its reference. */
void lk__connection_detach_client(lk_connection *n);
/** Do what the client wants now: connect, send, set its deadline. */
void lk__connection_update(lk_connection *n);
/** `deadline` has passed, and was removed from the heap. */
void lk__connection_on_deadline(lk_connection *n);
/** In a forked child: close without sending, and stop watching. */
void lk__connection_abandon(lk_connection *n);

#endif
