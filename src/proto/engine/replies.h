/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REPLIES_H
#define LK_PROTO_ENGINE_REPLIES_H

/**
 * @file
 * What a client does with the frames of a live connection: replies to requests,
 * pings, identities and setWatches, and watch events.
 */

#include <latchkey/types.h>

/** Process a frame that arrived in LK_PHASE_LIVE: a reply or an event. */
void lk__reply_take(lk_client *c, lk_bytes frame);

#endif
