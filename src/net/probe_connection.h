/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_PROBE_CONNECTION_H
#define LK_NET_PROBE_CONNECTION_H

#include "net/connection.h"

/** See to the client's second wish: to ask a server whether it has a quorum, on
    a connection of its own. */
void lk__probe_connection_update(lk_connection *n);
/** Give up what is under way, and tell nobody. */
void lk__probe_connection_end(lk_connection *n);

#endif
