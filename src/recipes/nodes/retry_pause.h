/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_RETRY_PAUSE_H
#define LK_RECIPES_NODES_RETRY_PAUSE_H

/**
 * @file
 * A pause before a retry, which the end of the client ends.
 */

#include <latchkey/client.h>

/**
 * A pause before a retry, for a caller without a request under way. It also
 * ends when its client is closed or fails to authenticate. The struct must be
 * zeroed first, and must not be moved while `on` is set.
 */
typedef struct lk_retry_pause {
  lk_timer timer;
  lk_listener listener;
  void (*over)(void *arg, int err);
  void *arg;
  bool on;
  bool last; /**< the call's deadline comes first: no retry */
} lk_retry_pause;

/** `over` is called once: with 0 at `at_ms`; with LK_ERR_CLOSED or
    LK_ERR_AUTH_FAILED if the client ends first. */
void lk__retry_pause_until(lk_retry_pause *p, lk_client *c, int64_t at_ms,
                           void (*over)(void *arg, int err), void *arg);
/** The same after 100 ms; or with LK_ERR_DEADLINE at `latest_ms`, the deadline
    of the call, if that is not later. A retry at the deadline could be refused
    at once. */
void lk__retry_pause_start(lk_retry_pause *p, lk_client *c, int64_t latest_ms,
                           void (*over)(void *arg, int err), void *arg);
/** Stop the pause; `over` is not called. No effect if it is not `on`. */
void lk__retry_pause_stop(lk_retry_pause *p, lk_client *c);

#endif
