/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SET_WATCHES_H
#define LK_PROTO_ENGINE_SET_WATCHES_H

#include "base/buf.h"
#include "proto/engine/watch_table.h"

/**
 * @file
 * Re-registering watches. A server may throttle a setWatches; then that watch
 * is not registered, and a change is reported only by a later setWatches with a
 * zxid from before the change. So each kind of watches on a path keeps the
 * oldest zxid since which something may be missing, until a setWatches with
 * that zxid has succeeded.
 */

/** Standing watches of `kind` on a path may miss changes after `zxid`. */
void lk__watched_mark_missing(lk_watched *on, lk_watch_kind kind, int64_t zxid);
/** The same for all standing watches: the connection was lost. */
void lk__watches_mark_missing(lk_watches *ws, int64_t zxid);

/**
 * Append the setWatches requests that register what is missing, as many as it
 * takes to keep each below 128 KiB of paths (ZOOKEEPER-706) and its frame
 * within `send_limit`; one with a single path is never too long. Requests with
 * an older zxid come first. Persistent watches come behind all others, since
 * before 3.9 the last one on a path takes the place of others. One-shot watches
 * are left out while an addWatch for their path is under way. `last_zxid`: of
 * the last reply; registered watches have got all events up to it.
 * Gives the number of requests, or -1: no memory.
 */
int lk__set_watches_encode(lk_watches *ws, int64_t last_zxid, size_t send_limit,
                           lk_buf *out);

/** Those requests count from 1. The ones below `end` have succeeded, and none
    is outstanding. Returns whether a watch is still missing. */
bool lk__set_watches_acknowledge(lk_watches *ws, uint32_t end);

#endif
