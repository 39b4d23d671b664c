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

struct lk_connection;

/** Prepare the probe that lk_client_want_probe() asked for in `want`. It uses
    the type of the transport of `n`, and the TLS options of its client. NULL:
    no memory. */
lk_probe_connection *lk__probe_connection_new(struct lk_connection *n,
                                              const lk_want *want);
/** Resolve the host's name and connect. lk__connection_on_probe_reply() is
    called once, perhaps before this returns, unless the probe is freed
    before. */
void lk__probe_connection_start(lk_probe_connection *p);
/** The lk_want.attempt that the probe was made for. */
uint64_t lk__probe_connection_attempt(const lk_probe_connection *p);
/** Close and free it; NULL is fine. */
void lk__probe_connection_free(lk_probe_connection *p);

#endif
