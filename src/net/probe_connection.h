/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_PROBE_CONNECTION_H
#define LK_NET_PROBE_CONNECTION_H

#include "net/driver_shared.h"
#include "net/watched_transport.h"

/**
 * A connection on which a client that found a read-only server probes another
 * one: it sends LK_PROBE and reads until the server closes.
 */
typedef struct lk_probe_connection lk_probe_connection;

/**
 * The reply of the server, or `len` 0: the probe failed. Called once, unless
 * the probe is ended before. The callback ends the probe.
 */
typedef void (*lk_probe_connection_cb)(void *arg, const char *reply,
                                       size_t len);

/** Prepare the probe that `want` of lk_client_want_probe() asks for, by
    transports of `type`. `client` is asked for its TLS options alone. NULL: no
    memory. */
lk_probe_connection *
lk__probe_connection_new(lk_driver_shared *x, const lk_client *client,
                         const lk_transport_type *type, const lk_want *want,
                         lk_probe_connection_cb done, void *arg);
/** Resolve the host's name and connect. `done` may be called. */
void lk__probe_connection_start(lk_probe_connection *p);
/** The lk_want.attempt that it was made for. */
uint64_t lk__probe_connection_attempt(const lk_probe_connection *p);
/** Close and free it; NULL is fine. `done` is not called. */
void lk__probe_connection_free(lk_probe_connection *p);

#endif
