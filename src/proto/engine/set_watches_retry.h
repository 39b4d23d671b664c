/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SET_WATCHES_RETRY_H
#define LK_PROTO_ENGINE_SET_WATCHES_RETRY_H

/**
 * @file
 * The setWatches requests of a connection, and when they are repeated.
 */

#include <latchkey/client.h>

/** setWatches of the connection. */
typedef struct lk_engine_set_watches {
  size_t sent;       /**< requests that were sent together last */
  size_t unanswered; /**< of these */
  bool throttled;    /**< one of them was */
  unsigned tries;    /**< in a row after which something was left to register */
  int64_t retry_ms;  /**< when that is tried again; or LK_NEVER */
  bool failed;       /**< no memory for one: reconnect */
} lk_engine_set_watches;

/** Send the setWatches that are due. @return false: no memory. */
bool lk__set_watches_send(lk_client *c);
/** All setWatches have replies. `missing`: some watches are not registered. */
void lk__set_watches_finish(lk_client *c, bool missing);
/** Repeat setWatches later, with jitter: the server throttled them. */
void lk__set_watches_retry_later(lk_client *c);
/** Repeat them if that is due at the client's clock. */
void lk__set_watches_run_retry(lk_client *c);

#endif
