/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_POLL_EPOLL_H
#define LK_POLL_EPOLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * The descriptor of lk_poll_fd(): an epoll that has the descriptors of the loop
 * and a timer. It is readable when the loop has work. A forked child shares it
 * with its parent, and does not change it.
 */
typedef struct lk_epoll {
  const struct lk_epoll_type *type; /**< NULL: not open */
  int fd;
  int timer_fd;
  pid_t owner;      /**< the process that has opened it */
  int64_t armed_ns; /**< when the timer fires; INT64_MAX: never */
} lk_epoll;

/** The functions of an open epoll. A table, so that a program that does not
    call lk_poll_fd() does not link them. */
typedef struct lk_epoll_type {
  bool (*watch)(const lk_epoll *e, int fd, int events);
  void (*forget)(const lk_epoll *e, int fd);
  void (*close)(lk_epoll *e);
} lk_epoll_type;

/** A time for lk__epoll_arm(): at once, never. */
#define LK_EPOLL_NOW   INT64_C(0)
#define LK_EPOLL_NEVER INT64_MAX

/** Returns 0 or LK_ERR_SYSTEM. */
int lk__epoll_open(lk_epoll *e);
/** Let the timer of an open epoll fire at `at_ns` on CLOCK_MONOTONIC, and not
    before. */
void lk__epoll_arm(lk_epoll *e, int64_t at_ns, int64_t now_ns);
static inline bool lk__epoll_is_open(const lk_epoll *e)
{
  return e->type != NULL;
}

/* These do nothing if it is not open. */

/** Watch a descriptor for these LK_LOOP_ events, in place of earlier ones.
    false: it cannot be watched. */
static inline bool lk__epoll_watch(const lk_epoll *e, int fd, int events)
{
  return e->type == NULL || e->type->watch(e, fd, events);
}

static inline void lk__epoll_forget(const lk_epoll *e, int fd)
{
  if (e->type != NULL)
    e->type->forget(e, fd);
}

/** In a forked child, too. */
static inline void lk__epoll_close(lk_epoll *e)
{
  if (e->type != NULL)
    e->type->close(e);
}

#endif
