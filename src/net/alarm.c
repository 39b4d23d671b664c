/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/alarm.h"

#include "base/list.h"

static void on_timerfd(lk_loop_io *io, int events)
{
  lk_alarm *a = LK_OWNER(io, lk_alarm, io);

  (void)events;
  a->on_alarm(a);
}

static void on_loop_timer(lk_loop_timer *t)
{
  lk_alarm *a = LK_OWNER(t, lk_alarm, timer);

  a->on_alarm(a);
}

/* With a timerfd the alarm is urgent: if the process was stopped for long, clients learn of
   their passed deadlines before they get the bytes that have come meanwhile. */
void lk__alarm_start(lk_alarm *a, lk_loop *loop, const lk_clock *clock)
{
  a->loop = loop;
  a->clock = clock;
  a->at_ms = INT64_MAX;
  a->timer.on_timer = on_loop_timer;
  a->io.on_events = on_timerfd;
  a->io.fd = clock->timer_fd;
  a->io.urgent = true;
  if (clock->timer_fd >= 0)
    lk__loop_set_io(loop, &a->io, LK_LOOP_READ);
}

static void alarm_set_loop_timer(lk_alarm *a)
{
  int64_t now_ms = lk__clock_now(a->clock);
  int64_t left_ms = a->at_ms > now_ms ? a->at_ms - now_ms : 0;

  lk__loop_set_timer(a->loop, &a->timer,
                     left_ms < LK_ALARM_MAX_MS ? left_ms : LK_ALARM_MAX_MS);
}

void lk__alarm_set(lk_alarm *a, int64_t at_ms)
{
  if (at_ms >= a->at_ms)
    return; /* the user sets the next alarm when the earlier one has fired */
  a->at_ms = at_ms;
  if (a->clock->timer_fd >= 0)
    lk__clock_set_timer(a->clock, at_ms);
  else
    alarm_set_loop_timer(a);
}

void lk__alarm_clear(lk_alarm *a)
{
  a->at_ms = INT64_MAX;
  lk__clock_clear_timer(a->clock);
}

void lk__alarm_stop(lk_alarm *a)
{
  lk__loop_stop_io(a->loop, &a->io);
  lk__loop_stop_timer(a->loop, &a->timer);
}
