/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_BELL_H
#define LK_EV_BELL_H

#include <ev.h>

/**
 * Wakes a loop from other threads and from signal handlers. libev's ev_async
 * does not do: it ends the process where no descriptor is left, and a thread
 * that is cancelled in ev_async_send() silences it for good.
 */
typedef struct lk_bell {
  struct ev_loop *loop;
  ev_io io;
  void (*rung)(void *arg); /**< several rings may become one call */
  void *arg;
} lk_bell;

/** Takes no reference on the loop. 0, or an errno: then nothing is open. */
int lk__bell_open(lk_bell *b, struct ev_loop *loop, void (*rung)(void *arg),
                  void *arg);
/** From any thread and from signal handlers, while it is open. No cancellation
    point; errno stays. */
void lk__bell_ring(const lk_bell *b);
/** Stop watching; in a child, before the loop is used there. */
void lk__bell_stop(lk_bell *b);
void lk__bell_close(lk_bell *b);

#endif
