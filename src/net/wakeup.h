/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WAKEUP_H
#define LK_NET_WAKEUP_H

#include "net/flag_fd.h"
#include "net/fork_check.h"
#include "net/loop.h"

/**
 * Wakes a loop from other threads and from signal handlers, by a lk_flag_fd.
 * libev's ev_async is not used, for two reasons: it ends the process if no
 * descriptor is left, and if a thread is cancelled in ev_async_send(), no
 * thread can wake the loop any more.
 */
typedef struct lk_wakeup {
  lk_loop *loop;
  lk_flag_fd flag; /**< set: there was a signal */
  lk_loop_io io;   /**< watches `flag` */
  const lk_fork_check *fork_check;
  void (*on_wakeup)(void *arg); /**< called once for one or more signals */
  void *arg;
} lk_wakeup;

/** Returns 0, or an errno if nothing was opened. A wakeup does not keep the
   loop running. In a forked child, as `fork_check` tells, it calls nothing and
   leaves the signal to the parent. */
int lk__wakeup_open(lk_wakeup *w, lk_loop *loop,
                    const lk_fork_check *fork_check,
                    void (*on_wakeup)(void *arg), void *arg);
/** Wake the loop. May be called from any thread and from signal handlers until
    lk__wakeup_close(). It is no cancellation point, and does not change errno.
 */
void lk__wakeup_signal(const lk_wakeup *w);
/** Stop watching, without closing. A forked child calls this before it uses the
    loop, since the descriptor is the parent's, too. */
void lk__wakeup_stop(lk_wakeup *w);
/** Stop watching and close the descriptor. */
void lk__wakeup_close(lk_wakeup *w);

#endif
