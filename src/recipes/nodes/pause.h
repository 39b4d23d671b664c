/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_PAUSE_H
#define LK_RECIPES_NODES_PAUSE_H

#include <latchkey/client.h>

/**
 * A rest for a server that is too busy, by somebody who has nothing under way:
 * it ends with its client, too. Zero it first; it must not be moved while it
 * lasts.
 */
typedef struct lk_pause {
  lk_timer timer;
  lk_listener listener;
  void (*over)(void *arg, int err);
  void *arg;
  bool on;
  bool last; /**< nothing is tried after it */
} lk_pause;

/** `over` is called once: with 0 at `at_ms`; with LK_ERR_CLOSED or
    LK_ERR_AUTH_FAILED if the client ends first. */
void lk__pause_until(lk_pause *p, lk_client *c, int64_t at_ms,
                     void (*over)(void *arg, int err), void *arg);
/** The same after a while; or with LK_ERR_DEADLINE at `latest_ms`, when the
   time of the call is over: who may be refused at once must not try again then.
 */
void lk__pause_start(lk_pause *p, lk_client *c, int64_t latest_ms,
                     void (*over)(void *arg, int err), void *arg);
/** `over` is not called any more. */
void lk__pause_stop(lk_pause *p, lk_client *c);

#endif
