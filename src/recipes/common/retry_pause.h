/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_RETRY_PAUSE_H
#define LK_RECIPES_COMMON_RETRY_PAUSE_H

/**
 * @file
 * A pause before a retry. It ends early if the client ends.
 */

#include <latchkey/client.h>

/**
 * A pause before a retry. It listens to the client, so that a caller without a
 * request under way learns that the client was closed or failed to
 * authenticate. The struct must be zeroed at first, and must not be moved while
 * `running` is set.
 */
typedef struct lk_retry_pause {
  lk_timer timer;
  lk_listener listener;
  void (*over)(void *arg, int err); /**< the pause has ended */
  void *arg;
  bool running;          /**< the pause has begun and not ended */
  bool ends_at_deadline; /**< of the call: no retry follows */
} lk_retry_pause;

/** Start a pause until `end_ms`. Then `over` is called with 0. If the client
    ends first, `over` is called with LK_ERR_CLOSED or LK_ERR_AUTH_FAILED
    instead. */
void lk__retry_pause_until(lk_retry_pause *p, lk_client *c, int64_t end_ms,
                           void (*over)(void *arg, int err), void *arg);
/** Start a pause of 100 ms. If `deadline_ms`, the call's deadline, comes first,
    the pause ends then, and `over` is called with LK_ERR_DEADLINE. */
void lk__retry_pause_start(lk_retry_pause *p, lk_client *c, int64_t deadline_ms,
                           void (*over)(void *arg, int err), void *arg);
/** Stop the pause; `over` is not called. No effect if it is not `running`. */
void lk__retry_pause_stop(lk_retry_pause *p, lk_client *c);

#endif
