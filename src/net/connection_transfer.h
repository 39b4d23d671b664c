/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_TRANSFER_H
#define LK_NET_CONNECTION_TRANSFER_H

#include "net/connection.h"

/** Receive until nothing is left, or until other connections of the loop have
    waited long enough. */
void lk__connection_receive(lk_connection *n);
/** Send as much of the client's output as the transport takes. */
void lk__connection_send(lk_connection *n);
/** The event after which more can be received: LK_LOOP_READ or LK_LOOP_WRITE.
 */
int lk__connection_receive_events(const lk_connection *n);

#endif
