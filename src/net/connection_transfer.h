/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_TRANSFER_H
#define LK_NET_CONNECTION_TRANSFER_H

#include "net/connection.h"

/** Receive until there is nothing left, or other connections have to be served
    first. */
void lk__connection_receive(lk_connection *n);
/** Send the client's output, as far as the transport takes it. */
void lk__connection_send(lk_connection *n);
/** The events after which more can be received. */
int lk__connection_receive_events(const lk_connection *n);

#endif
