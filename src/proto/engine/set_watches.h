/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SET_WATCHES_H
#define LK_PROTO_ENGINE_SET_WATCHES_H

/**
 * @file
 * Re-registering watches: the setWatches requests of a new connection, their
 * replies, and their repetition. A setWatches contains a zxid, and the server
 * reports the changes after it. If the server throttles a setWatches, its
 * watches are not registered, and only a later setWatches with the same or an
 * older zxid reports the changes since then. So lk_watched.missing_after keeps
 * this zxid for each kind of watches on a path until a setWatches with it has
 * succeeded.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "proto/engine/watches.h"

/** The setWatches requests of the connection. */
typedef struct lk_engine_set_watches {
  size_t sent;       /**< number of requests that were last sent together */
  size_t unanswered; /**< how many of these have no reply */
  bool throttled;    /**< the server has throttled one of these */
  unsigned tries;    /**< times in a row after which some watches were still not
                          registered */
  int64_t retry_ms;  /**< when these watches are tried again; LK_NEVER: none are
                          left */
} lk_engine_set_watches;

/** All standing watches may miss changes after `zxid`: the connection was
    lost. */
void lk__watches_mark_missing(lk_watches *ws, int64_t zxid);

/**
 * Append the setWatches requests for all watches that are missing. Each has at
 * most 128 KiB of paths (ZOOKEEPER-706), and its frame is within `send_limit`;
 * a request with a single path may be longer. Requests with an older zxid come
 * first. No path of a persistent watch has one-shot watches that are missing
 * (watch_calls.c). On servers before 3.9 a one-shot watch that is registered
 * replaces a persistent one, so one-shot watches are left out while an addWatch
 * for their path is under way.
 *
 * @return the number of requests; -1: there is no memory.
 */
int lk__set_watches_encode(lk_watches *ws, size_t send_limit, lk_buf *out);

/** Send setWatches for all watches that are not registered.
    @return false: no memory. */
bool lk__set_watches_send(lk_client *c);

/** Note that of these requests, numbered from 1, those with a number below
    `end` have succeeded, and that those from `end` on have failed.
    @return whether a watch is still missing. */
bool lk__set_watches_acknowledge(lk_watches *ws, uint32_t end);
/** The value of `end` if all requests have succeeded. */
#define LK_ALL_SET_WATCHES UINT32_MAX

/** All setWatches have replies, and some watches are still not registered: send
    setWatches again after a pause with jitter. */
void lk__set_watches_retry_later(lk_client *c);
/** Send setWatches again, which is due at `retry_ms`. @return false: no
    memory. */
bool lk__set_watches_run_retry(lk_client *c);

#endif
