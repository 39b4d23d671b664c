/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CONNECTION_ATTEMPT_H
#define LK_NET_CONNECTION_ATTEMPT_H

#include "net/connection.h"

/** Prepare the tries of a new connection. */
void lk__connection_init_race(lk_connection *n,
                              void (*on_events)(lk_loop_io *io, int events));
/** Make the first transport. false: no memory. */
bool lk__connection_make_transport(lk_connection *n,
                                   const lk_transport_type *type);
/** Begin the attempt that lk_client_want() asked for in `want`. */
void lk__connection_start(lk_connection *n, const lk_want *want);
/** The lk_lookup.done of `lk_connection.lookup`. */
void lk__connection_on_lookup(lk_lookup *l, const lk_address *list,
                              size_t count, const char *why);
/** The descriptor of a try is ready, in LK_STAGE_CONNECTING. */
void lk__connection_on_try_events(lk_race_try *t, int events);
/** End the attempt, or close the connection that it has led to. */
void lk__connection_close(lk_connection *n);
/** Close, and report `err` and `why` to the client. */
void lk__connection_fail(lk_connection *n, int err, const char *why);
/** Close, and report to the client that the server has closed the
    connection. */
void lk__connection_closed_by_server(lk_connection *n);
/** Close, and report the error of a transport to the client. */
void lk__connection_fail_transport(lk_connection *n,
                                   const lk_watched_transport *failed);
/** Whether `attempt` is still under way or connected, in this process. To be
    asked after each input to the client: a callback may have freed the client,
    forked, or ended the connection. */
bool lk__connection_attempt_goes_on(const lk_connection *n, uint64_t attempt);

#endif
