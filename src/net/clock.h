/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CLOCK_H
#define LK_NET_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * A clock with one alarm. At the time of the alarm, `fd` becomes readable. The
 * clock goes on while the machine is suspended (CLOCK_BOOTTIME), if the system
 * has such a clock.
 */
typedef struct lk_clock {
  int fd; /**< a timerfd */
  clockid_t id;
  int64_t alarm_ms; /**< the time of the alarm; INT64_MAX: no alarm is set */
} lk_clock;

/** Returns 0 or an errno. */
int lk__clock_open(lk_clock *c);
/** The time of the clock in milliseconds, rounded down. */
int64_t lk__clock_now(const lk_clock *c);
/**
 * Make sure that `fd` becomes readable at `at_ms` or earlier. An alarm for an
 * earlier time is kept: one needless wakeup is cheaper than a system call each
 * time that a deadline is postponed.
 */
void lk__clock_set_alarm(lk_clock *c, int64_t at_ms);
/** To be called when `fd` is readable: no alarm is set any more. */
void lk__clock_clear_alarm(lk_clock *c);
void lk__clock_close(lk_clock *c);

#endif
