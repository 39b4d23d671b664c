/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CLIENT_DEADLINES_H
#define LK_PROTO_ENGINE_CLIENT_DEADLINES_H

/**
 * @file
 * Every deadline of a client but those of its requests.
 */

#include <latchkey/client.h>

/** Do everything that is due at the client's clock. */
void lk__client_run_due(lk_client *c);
int64_t lk__client_next_deadline(const lk_client *c);
/** The pause before the next connection attempt, with jitter. */
int64_t lk__timing_pause(lk_client *c);
/** Repeat setWatches later, with jitter: the server throttled them. */
void lk__timing_reregister_later(lk_client *c);
/** How long a connection attempt may take, from resolving to the reply of the
    handshake, while no session is about to end. */
int64_t lk__timing_attempt(const lk_client *c);
/** A connection attempt begins: set its deadline. */
void lk__timing_begin_attempt(lk_client *c);
/** The number of addresses is known now: the deadline of the attempt at the
    first address becomes its share, but no later than before. */
void lk__timing_resolved(lk_client *c);

#endif
