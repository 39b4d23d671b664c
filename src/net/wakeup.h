/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WAKEUP_H
#define LK_NET_WAKEUP_H

#include <ev.h>

/**
 * Wakes a loop from other threads and from signal handlers. libev's ev_async
 * does not do: it ends the process where no descriptor is left, and a thread
 * that is cancelled in ev_async_send() silences it for good.
 */
typedef struct lk_wakeup {
  struct ev_loop *loop;
  ev_io io;
  void (*rung)(void *arg); /**< several rings may become one call */
  void *arg;
} lk_wakeup;

/** Takes no reference on the loop. 0, or an errno: then nothing is open. */
int lk__wakeup_open(lk_wakeup *b, struct ev_loop *loop, void (*rung)(void *arg),
                    void *arg);
/** From any thread and from signal handlers, while it is open. No cancellation
    point; errno stays. */
void lk__wakeup_signal(const lk_wakeup *b);
/** Stop watching; in a child, before the loop is used there. */
void lk__wakeup_stop(lk_wakeup *b);
void lk__wakeup_close(lk_wakeup *b);

#endif
