/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_CLOCK_H
#define LK_NET_CLOCK_H

#include <stdint.h>
#include <time.h>

/**
 * The time, and one alarm on it: a descriptor that becomes readable. The clock
 * runs while the machine sleeps where there is such a clock.
 */
typedef struct lk_clock {
  int fd;
  clockid_t id;
  int64_t rings; /**< when the alarm is set to, ms; INT64_MAX: it is not */
} lk_clock;

/** 0, or an errno. */
int lk__clock_open(lk_clock *c);
/** In ms, rounded down. */
int64_t lk__clock_now(const lk_clock *c);
/**
 * See to it that the alarm rings at `at` or earlier. An alarm that is set too
 * early stays: one needless call then, instead of one system call each time
 * that a deadline moves on.
 */
void lk__clock_set_alarm(lk_clock *c, int64_t at);
/** It rang, and is off now. */
void lk__clock_clear_alarm(lk_clock *c);
void lk__clock_close(lk_clock *c);

#endif
