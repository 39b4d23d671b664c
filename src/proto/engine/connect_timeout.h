/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CONNECT_TIMEOUT_H
#define LK_PROTO_ENGINE_CONNECT_TIMEOUT_H

/**
 * @file
 * The time limit of a connection attempt, from resolving the name to the reply
 * of the handshake or of SASL.
 */

#include <latchkey/client.h>

/** The usual time limit, which is shorter only if the session is about to
    end. */
int64_t lk__connect_timeout_usual_ms(const lk_client *c);
/** A connection attempt begins: set its deadline. */
void lk__connect_timeout_begin(lk_client *c);
/** The transport is connected: the handshake has the usual time. */
void lk__connect_timeout_begin_handshake(lk_client *c);
/** The number of addresses of the server is known now: shorten the attempt at
    the first address, so that there is time for the others. */
void lk__connect_timeout_shorten(lk_client *c);
/** Write to `out` what the attempt still lacks at its deadline: a line for the
    log. */
void lk__connect_timeout_text(const lk_client *c, char *out, size_t size);

#endif
