/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_FLAG_FD_H
#define LK_NET_FLAG_FD_H

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

#endif
