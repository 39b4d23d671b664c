/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CONNECT_TIMEOUT_H
#define LK_PROTO_ENGINE_CONNECT_TIMEOUT_H

/**
 * @file
 * How long one connection attempt may take, from resolving to the reply of the
 * handshake.
 */

#include <latchkey/client.h>

/** While no session is about to end. */
int64_t lk__connect_timeout_usual_ms(const lk_client *c);
/** A connection attempt begins: set its deadline. */
void lk__connect_timeout_begin(lk_client *c);
/** The number of addresses is known now: the deadline of the attempt at the
    first address becomes its share, but no later than before. */
void lk__connect_timeout_shorten(lk_client *c);
/** End the attempt if its deadline has passed at the client's clock. */
void lk__connect_timeout_run(lk_client *c);

#endif
