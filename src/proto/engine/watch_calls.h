/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCH_CALLS_H
#define LK_PROTO_ENGINE_WATCH_CALLS_H

/**
 * @file
 * Setting and cancelling watches.
 */

#include "proto/engine/watches.h"

/** The opcode of a request that was not sent. */
enum { LK_OPCODE_OF_UNSENT = 0 };

/** The request that sets `w` has completed with `err`: the watch gets events
    from now on, or is dropped. `op`: the request's opcode, or
    LK_OPCODE_OF_UNSENT. */
void lk__watch_request_completed(lk_client *c, lk_watch *w, int32_t op,
                                 int err);

#endif
