/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CONNECT_TIMEOUT_H
#define LK_PROTO_ENGINE_CONNECT_TIMEOUT_H

/**
 * @file
 * The time limits of a connection attempt: for the lookup of the name, for the
 * connection, and for the handshakes of TLS, ZooKeeper and SASL.
 */

#include <latchkey/client.h>

/** The share of an attempt in the time that a round of all servers may take. */
int64_t lk__connect_timeout_share_ms(const lk_client *c);
/** How long TCP may take to connect to one address: lk_want.tcp_ms. */
int64_t lk__connect_timeout_tcp_ms(const lk_client *c);
/** A connection attempt begins: set its deadline. */
void lk__connect_timeout_begin(lk_client *c);
/** The driver connects to an address of the name, maybe to another one than
    before in this attempt. */
void lk__connect_timeout_note_addresses(lk_client *c);
/** The transport is connected: the handshake begins. */
void lk__connect_timeout_begin_handshake(lk_client *c);
/** The handshake has succeeded. */
void lk__connect_timeout_note_handshake(lk_client *c);
/** The error of an attempt at its deadline. */
int lk__connect_timeout_err(const lk_client *c);
/** Write to `out` what the attempt still lacks at its deadline: a line for the
    log. */
void lk__connect_timeout_text(const lk_client *c, char *out, size_t size);

#endif
