/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCH_CALLS_H
#define LK_PROTO_ENGINE_WATCH_CALLS_H

#include "proto/engine/watch_table.h"

/** The request that sets `w` completed with `err`: the watch stands, or is
    dropped. */
void lk__watch_request_completed(lk_client *c, lk_watch *w, int32_t op,
                                 int err);
/** A setWatches that is no part of a reconnect completed with `err`. `repair`
    is its `arg`, and freed. */
void lk__watch_repair_completed(lk_client *c, void *repair, int err);

#endif
