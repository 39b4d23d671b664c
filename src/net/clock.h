/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CLOCK_H
#define LK_NET_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * A clock, and one alarm on it: a descriptor that becomes readable. The clock
 * includes the time that the machine is suspended (CLOCK_BOOTTIME), if the
 * system has such a clock.
 */
typedef struct lk_clock {
  int fd;
  clockid_t id;
  int64_t alarm_ms; /**< when the alarm is set to; INT64_MAX: it is not set */
} lk_clock;

/** 0, or an errno. */
int lk__clock_open(lk_clock *c);
/** In ms, rounded down. */
int64_t lk__clock_now(const lk_clock *c);
/**
 * Make sure that `fd` becomes readable at `at_ms` or earlier. An alarm that is
 * set to an earlier time stays: it costs one needless wakeup, while setting it
 * each time that a deadline moves on would cost a system call each time.
 */
void lk__clock_set_alarm(lk_clock *c, int64_t at_ms);
/** After `fd` became readable: the alarm is not set any more. */
void lk__clock_clear_alarm(lk_clock *c);
void lk__clock_close(lk_clock *c);

#endif
