/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_ATTEMPT_H
#define LK_NET_CONNECTION_ATTEMPT_H

#include "net/connection.h"

/** Begin the attempt that `want` of lk_client_want() asks for. */
void lk__connection_start(lk_connection *n, const lk_want *want);
/** For lk_lookup.done. */
void lk__connection_on_lookup(lk_lookup *l, const lk_address *list,
                              size_t count, const char *why);
/** A step of connecting returned `flow`: wait, take the next step, or fail. */
void lk__connection_continue(lk_connection *n, lk_flow flow);
/** End the attempt, or the connection that came of it. */
void lk__connection_close(lk_connection *n);
/** The same, and report `err` and `why` to the client. */
void lk__connection_fail(lk_connection *n, int err, const char *why);
/** The same with the error of the transport. */
void lk__connection_fail_transport(lk_connection *n);
/** Whether the connection is still that of `attempt`, in the same process: each
    input of the client can free it, fork, or change what it wants. */
bool lk__connection_is_of_attempt(const lk_connection *n, uint64_t attempt);

#endif
