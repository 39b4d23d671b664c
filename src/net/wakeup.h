/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_WAKEUP_H
#define LK_NET_WAKEUP_H

/**
 * @file
 * A descriptor as a flag, and the wakeup of a loop that is built on it.
 */

#include "net/fork_check.h"
#include "net/loop.h"

/**
 * A descriptor that is readable while a flag is set: an eventfd, or a pipe if
 * the system has no eventfd. Both are non-blocking and close-on-exec.
 */
typedef struct lk_flag_fd {
  int read_fd;  /**< for poll(); -1: not open */
  int write_fd; /**< the same descriptor for an eventfd */
} lk_flag_fd;

/** An object that is not open. */
#define LK_FLAG_FD_NONE ((lk_flag_fd){-1, -1})

/** The flag is not set at first. Returns 0, or an errno if nothing was opened.
 */
int lk__flag_fd_open(lk_flag_fd *f);
/** Setting it again has no further effect. May be called in a signal handler,
    which must save errno. It is a cancellation point. */
void lk__flag_fd_set(const lk_flag_fd *f);
void lk__flag_fd_clear(const lk_flag_fd *f);
/** Does nothing if `f` is not open. */
void lk__flag_fd_close(lk_flag_fd *f);

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
