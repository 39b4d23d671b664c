/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_DRIVER_H
#define LK_NET_CONNECTION_DRIVER_H

#include "net/connection.h"

/** NULL: no memory. The caller gets the only reference, which belongs to the
    client as soon as there is one. */
lk_connection *lk__connection_new(lk_driver_shared *x);
/** Make the transport that the options of the client ask for. Returns 0,
    LK_ERR_NO_MEMORY or LK_ERR_UNIMPLEMENTED (TLS in a build without it). */
int lk__connection_init_transport(lk_connection *n);
/** The client is freed, or could not be made: close the connection, and drop
    the client's reference. */
void lk__connection_detach_client(lk_connection *n);
/** Do what the client wants now: connect or close, probe a server, send, and
    watch for its deadline. */
void lk__connection_update(lk_connection *n);
/** The time of `deadline` has come, and `deadline` was removed from the heap.
 */
void lk__connection_on_deadline(lk_connection *n);
/** Close without sending anything, and leave the loop. In a forked child this
    does not disturb the parent's connection. */
void lk__connection_abandon(lk_connection *n);

#endif
