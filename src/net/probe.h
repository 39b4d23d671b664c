/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_PROBE_H
#define LK_NET_PROBE_H

#include "net/driver.h"
#include "net/watched_transport.h"

/**
 * A connection that asks a server whether it has a quorum, after the client has
 * found a read-only server. It sends LK_PROBE, and reads the reply until the
 * server closes the connection.
 */
typedef struct lk_probe_connection lk_probe_connection;

/**
 * Gets the reply of the server; `len` 0: the probe failed. Called once, unless
 * the probe is freed before. The callback has to free the probe.
 */
typedef void (*lk_probe_connection_cb)(void *arg, const char *reply,
                                       size_t len);

/** Prepare the probe that lk_client_want_probe() asked for in `want`. The
    connection is a transport of `type`; only the TLS options of `client` are
    used. NULL: no memory. */
lk_probe_connection *
lk__probe_connection_new(lk_driver_shared *x, const lk_client *client,
                         const lk_transport_type *type, const lk_want *want,
                         lk_probe_connection_cb done, void *arg);
/** Resolve the host's name and connect. `done` may be called before this
    returns. */
void lk__probe_connection_start(lk_probe_connection *p);
/** The lk_want.attempt that the probe was made for. */
uint64_t lk__probe_connection_attempt(const lk_probe_connection *p);
/** Close and free it; NULL is fine. `done` is not called. */
void lk__probe_connection_free(lk_probe_connection *p);

#endif
