/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/clock.h"

#include <unistd.h>

#include "base/missing_call.h"

#ifndef CLOCK_BOOTTIME
#  define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

#ifdef HAVE_TIMERFD_CREATE
#  include <sys/timerfd.h>

static int open_timerfd(clockid_t id)
{
  return timerfd_create(id, TFD_NONBLOCK | TFD_CLOEXEC);
}

static void set_timerfd(int fd, const struct itimerspec *when)
{
  timerfd_settime(fd, TFD_TIMER_ABSTIME, when, NULL);
}

#else

static int open_timerfd(clockid_t id)
{
  (void)id;
  errno = ENOSYS;
  return -1;
}

static void set_timerfd(int fd, const struct itimerspec *when)
{
  (void)fd;
  (void)when;
}

#endif

/* In the order in which they are tried: not every kernel has a timerfd for
   CLOCK_BOOTTIME. */
static const clockid_t clock_ids[] = {CLOCK_BOOTTIME, CLOCK_MONOTONIC};

/* The first of these clocks that can be read. */
static clockid_t find_readable_clock(void)
{
  struct timespec ignored;

  return clock_gettime(CLOCK_BOOTTIME, &ignored) == 0 ? CLOCK_BOOTTIME
                                                      : CLOCK_MONOTONIC;
}

int lk__clock_open(lk_clock *c)
{
  for (size_t i = 0; i < sizeof clock_ids / sizeof *clock_ids; i++) {
    c->id = clock_ids[i];
    c->timer_fd = open_timerfd(c->id);
    if (c->timer_fd >= 0)
      return 0;
  }
  if (!lk__call_is_missing(errno))
    return errno;
  c->id = find_readable_clock();
  return 0;
}

void lk__clock_set_timer(const lk_clock *c, int64_t at_ms)
{
  struct itimerspec when = {{0, 0}, {0, 0}}; /* zero disarms the timer */

  if (at_ms > 0 && at_ms != INT64_MAX) {
    when.it_value.tv_sec = (time_t)(at_ms / 1000);
    when.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000;
  } else if (at_ms <= 0) {
    when.it_value.tv_nsec = 1; /* long past: the timer expires at once */
  }
  if (c->timer_fd >= 0)
    set_timerfd(c->timer_fd, &when);
}

void lk__clock_clear_timer(const lk_clock *c)
{
  uint64_t ignored; /* how many times the timer has expired */

  while (c->timer_fd >= 0 && read(c->timer_fd, &ignored, sizeof ignored) < 0 &&
         errno == EINTR)
    ;
}

void lk__clock_close(lk_clock *c)
{
  if (c->timer_fd >= 0)
    close(c->timer_fd);
}
