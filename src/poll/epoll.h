/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_POLL_EPOLL_H
#define LK_POLL_EPOLL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * The descriptor of lk_poll_fd(): an epoll that has the descriptors of the loop
 * and a timer. It is readable when the loop has work. A forked child shares it
 * with its parent, and does not change it.
 */
typedef struct lk_epoll {
  bool is_open;
  int fd;
  int timer_fd;
  pid_t owner;      /**< the process that has opened it */
  int64_t armed_ns; /**< when the timer fires; INT64_MAX: never */
} lk_epoll;

/** A time for lk__epoll_arm(): at once, never. */
#define LK_EPOLL_NOW   INT64_C(0)
#define LK_EPOLL_NEVER INT64_MAX

/** Returns 0 or LK_ERR_SYSTEM. */
int lk__epoll_open(lk_epoll *e);
/** In a forked child, too. */
void lk__epoll_close(lk_epoll *e);
/** Watch a descriptor for these LK_LOOP_ events, in place of earlier ones.
    false: it cannot be watched. */
bool lk__epoll_watch(const lk_epoll *e, int fd, int events);
void lk__epoll_forget(const lk_epoll *e, int fd);
/** Let the timer fire at `at_ns` on CLOCK_MONOTONIC, and not before. */
void lk__epoll_arm(lk_epoll *e, int64_t at_ns, int64_t now_ns);

#endif
