/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "poll/epoll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <latchkey/error.h>

#include "net/loop.h"

enum { NS_PER_S = 1000000000 };

/* Asked ahead of a system call only, since it is one itself. */
static bool is_owner(const lk_epoll *e)
{
  return e->owner == getpid();
}

static void epoll_close(lk_epoll *e)
{
  close(e->timer_fd);
  close(e->fd);
  e->type = NULL;
}

static bool epoll_watch(const lk_epoll *e, int fd, int events)
{
  struct epoll_event wanted = {
      .events = ((events & LK_LOOP_READ) != 0 ? EPOLLIN : 0U) |
                ((events & LK_LOOP_WRITE) != 0 ? EPOLLOUT : 0U)};

  return !is_owner(e) || epoll_ctl(e->fd, EPOLL_CTL_MOD, fd, &wanted) == 0 ||
         epoll_ctl(e->fd, EPOLL_CTL_ADD, fd, &wanted) == 0;
}

/* A descriptor that was closed before is forgotten already. */
static void epoll_forget(const lk_epoll *e, int fd)
{
  int saved_errno = errno;
  struct epoll_event unused = {.events = 0};

  if (is_owner(e))
    (void)epoll_ctl(e->fd, EPOLL_CTL_DEL, fd, &unused);
  errno = saved_errno;
}

/* A timer that has fired stays readable until it is set again. */
void lk__epoll_arm(lk_epoll *e, int64_t at_ns, int64_t now_ns)
{
  struct itimerspec at = {.it_value = {0, 0}};
  bool has_fired = e->armed_ns <= now_ns;

  if ((at_ns == e->armed_ns && !has_fired) || (at_ns <= now_ns && has_fired) ||
      !is_owner(e))
    return;
  if (at_ns != LK_EPOLL_NEVER) {
    at.it_value.tv_sec = (time_t)(at_ns / NS_PER_S);
    at.it_value.tv_nsec = (long)(at_ns % NS_PER_S);
    if (at_ns == LK_EPOLL_NOW)
      at.it_value.tv_nsec = 1; /* all zeros would stop the timer */
  }
  (void)timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
  e->armed_ns = at_ns;
}

static const lk_epoll_type epoll_type = {
    .watch = epoll_watch, .forget = epoll_forget, .close = epoll_close};

int lk__epoll_open(lk_epoll *e)
{
  struct epoll_event timer = {.events = EPOLLIN};

  e->fd = epoll_create1(EPOLL_CLOEXEC);
  if (e->fd < 0)
    return LK_ERR_SYSTEM;
  e->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (e->timer_fd < 0)
    goto fail_timer;
  if (epoll_ctl(e->fd, EPOLL_CTL_ADD, e->timer_fd, &timer) != 0)
    goto fail;
  e->owner = getpid();
  e->armed_ns = LK_EPOLL_NEVER;
  e->type = &epoll_type;
  return 0;

fail:
  close(e->timer_fd);
fail_timer:
  close(e->fd);
  return LK_ERR_SYSTEM;
}
