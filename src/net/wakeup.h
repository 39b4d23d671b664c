/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WAKEUP_H
#define LK_NET_WAKEUP_H

#include "net/loop.h"

/**
 * Wakes a loop from other threads and from signal handlers, by an eventfd.
 * libev's ev_async is not used: it ends the process if no descriptor is left,
 * and a thread that is cancelled in ev_async_send() leaves it unable to wake
 * the loop again.
 */
typedef struct lk_wakeup {
  lk_loop *loop;
  lk_loop_io io;
  void (*on_wakeup)(void *arg); /**< several signals may become one call */
  void *arg;
} lk_wakeup;

/** Does not keep the loop running. 0, or an errno: then nothing is open. */
int lk__wakeup_open(lk_wakeup *w, lk_loop *loop, void (*on_wakeup)(void *arg),
                    void *arg);
/** From any thread and from signal handlers, while it is open. No cancellation
    point; errno stays. */
void lk__wakeup_signal(const lk_wakeup *w);
/** Stop watching; in a child, before the loop is used there. */
void lk__wakeup_stop(lk_wakeup *w);
void lk__wakeup_close(lk_wakeup *w);

#endif
