/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CONNECTION_ATTEMPT_H
#define LK_PROTO_ENGINE_CONNECTION_ATTEMPT_H

/**
 * @file
 * How long one connection attempt may take, from resolving to the reply of the
 * handshake.
 */

#include <latchkey/client.h>

/** While no session is about to end. */
int64_t lk__attempt_usual_ms(const lk_client *c);
/** A connection attempt begins: set its deadline. */
void lk__attempt_begin(lk_client *c);
/** The number of addresses is known now: the deadline of the attempt at the
    first address becomes its share, but no later than before. */
void lk__attempt_resolved(lk_client *c);

#endif
