/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CLOCK_H
#define LK_NET_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * A clock with one timer. The clock goes on while the machine is suspended
 * (CLOCK_BOOTTIME), if the system has such a clock.
 */
typedef struct lk_clock {
  clockid_t id;
  int timer_fd; /**< a timerfd, readable when the timer has expired; -1: the
                     system has none */
} lk_clock;

/** Returns 0 or an errno. 0, too, if the system has no timerfd. */
int lk__clock_open(lk_clock *c);
/** The time of the clock in milliseconds, rounded down. */
static inline int64_t lk__clock_now(const lk_clock *c)
{
  struct timespec t = {0, 0};

  clock_gettime(c->id, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
/** Let the timer expire at `at_ms`; INT64_MAX: never. Does nothing without a
    timerfd. */
void lk__clock_set_timer(const lk_clock *c, int64_t at_ms);
/** The timer has expired: `timer_fd` is not readable any more. Does nothing if
    it is not. */
void lk__clock_clear_timer(const lk_clock *c);
void lk__clock_close(lk_clock *c);

#endif
