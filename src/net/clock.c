/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/clock.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef CLOCK_BOOTTIME
#  define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif

/* In the order in which they are tried: not every kernel has a timerfd for
   CLOCK_BOOTTIME. */
static const clockid_t clock_ids[] = {CLOCK_BOOTTIME, CLOCK_MONOTONIC};

int lk__clock_open(lk_clock *c)
{
  c->alarm_ms = INT64_MAX;
  for (size_t i = 0; i < sizeof clock_ids / sizeof *clock_ids; i++) {
    c->id = clock_ids[i];
    c->fd = timerfd_create(c->id, TFD_NONBLOCK | TFD_CLOEXEC);
    if (c->fd >= 0)
      return 0;
  }
  return errno;
}

int64_t lk__clock_now(const lk_clock *c)
{
  struct timespec t = {0, 0};

  clock_gettime(c->id, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void lk__clock_set_alarm(lk_clock *c, int64_t at_ms)
{
  struct itimerspec when = {{0, 0}, {0, 0}};

  if (at_ms >= c->alarm_ms)
    return; /* the driver sets the next alarm when the earlier one has fired */
  c->alarm_ms = at_ms;
  if (at_ms > 0) {
    when.it_value.tv_sec = (time_t)(at_ms / 1000);
    when.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000;
  } else {
    when.it_value.tv_nsec = 1; /* zero would disarm the timer */
  }
  timerfd_settime(c->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void lk__clock_clear_alarm(lk_clock *c)
{
  uint64_t ignored; /* how many times the timerfd has expired */

  c->alarm_ms = INT64_MAX;
  while (read(c->fd, &ignored, sizeof ignored) < 0 && errno == EINTR)
    ;
}

void lk__clock_close(lk_clock *c)
{
  close(c->fd);
}
