/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_ATTEMPT_H
#define LK_NET_CONNECTION_ATTEMPT_H

#include "net/connection.h"

/** Begin the attempt that lk_client_want() asked for in `want`. */
void lk__connection_start(lk_connection *n, const lk_want *want);
/** The lk_lookup.done of `lk_connection.lookup`. */
void lk__connection_on_lookup(lk_lookup *l, const lk_address *list,
                              size_t count, const char *why);
/** A step of connecting returned `flow`: wait, take the next step, or fail. */
void lk__connection_continue_connecting(lk_connection *n, lk_flow flow);
/** End the attempt, or close the connection that it has led to. */
void lk__connection_close(lk_connection *n);
/** Close, and report `err` and `why` to the client. */
void lk__connection_fail(lk_connection *n, int err, const char *why);
/** Close, and report to the client that the server has closed the
    connection. */
void lk__connection_closed_by_server(lk_connection *n);
/** Close, and report the error of the transport to the client. */
void lk__connection_fail_transport(lk_connection *n);
/** Whether `attempt` is still under way or connected, in this process. To be
    asked after each input to the client: a callback may have freed the client,
    forked, or ended the connection. */
bool lk__connection_attempt_goes_on(const lk_connection *n, uint64_t attempt);

#endif
