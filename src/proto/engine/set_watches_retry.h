/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SET_WATCHES_RETRY_H
#define LK_PROTO_ENGINE_SET_WATCHES_RETRY_H

/**
 * @file
 * The setWatches requests of a connection, and when they are repeated.
 */

#include <latchkey/client.h>

/** The setWatches requests of the connection. */
typedef struct lk_engine_set_watches {
  size_t sent;       /**< number of requests that were last sent together */
  size_t unanswered; /**< how many of these have no reply */
  bool throttled;    /**< the server has throttled one of these */
  unsigned tries;    /**< times in a row after which some watches were still not
                          registered */
  int64_t retry_ms;  /**< when these watches are tried again; LK_NEVER: none are
                          left */
  bool failed;       /**< there was no memory for a setWatches: reconnect */
} lk_engine_set_watches;

/** Send setWatches for all watches that are not registered.
    @return false: no memory. */
bool lk__set_watches_send(lk_client *c);
/** All setWatches have replies. `missing`: some watches are still not
    registered, and are tried again later. */
void lk__set_watches_finish(lk_client *c, bool missing);
/** Send setWatches again after a pause with jitter. */
void lk__set_watches_retry_later(lk_client *c);
/** Send setWatches again, which is due at `retry_ms`. @return false: no
    memory. */
bool lk__set_watches_run_retry(lk_client *c);

#endif
