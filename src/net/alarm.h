/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_ALARM_H
#define LK_NET_ALARM_H

#include "net/clock.h"
#include "net/loop.h"

/**
 * Invokes a callback on the loop's thread at a time of a clock. If the clock
 * has no timerfd, a timer of the loop serves, which may stand still while the
 * machine is suspended: the callback is then late by LK_ALARM_MAX_MS at most.
 */
typedef struct lk_alarm {
  /** Set by the user. It may be called before `at_ms`, so it must read the
      clock itself and set the alarm again. */
  void (*on_alarm)(struct lk_alarm *a);
  lk_loop *loop;
  const lk_clock *clock;
  int64_t at_ms;       /**< INT64_MAX: no alarm is set */
  lk_loop_io io;       /**< watches the timerfd of `clock` */
  lk_loop_timer timer; /**< is used if there is none */
} lk_alarm;

/** The longest time for which a timer of the loop is set. */
enum { LK_ALARM_MAX_MS = 1000 };

/** Start watching. `on_alarm` is set, and the rest is zeros. `clock` outlives
    the alarm. An alarm does not keep the loop running. */
void lk__alarm_start(lk_alarm *a, lk_loop *loop, const lk_clock *clock);
/**
 * Make sure that `on_alarm` is called at `at_ms` or earlier. An alarm for an
 * earlier time is kept: one needless wakeup is cheaper than a system call each
 * time that a deadline is postponed.
 */
void lk__alarm_set(lk_alarm *a, int64_t at_ms);
/** To be called in `on_alarm`: no alarm is set any more. A forked child does
    not call it, since the timerfd is the parent's, too. */
void lk__alarm_clear(lk_alarm *a);
/** Stop watching. */
void lk__alarm_stop(lk_alarm *a);

#endif
