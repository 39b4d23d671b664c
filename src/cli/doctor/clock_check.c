/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/clock.h"
#include "cli/doctor/clock_check.h"

/* Clock synchronization corrects a clock by less than 1 ms a second. */
enum { LEAST_STAND_MS = 500, LEAST_STEP_MS = 200 };

cli_clock_reading cli_clock_read(void)
{
  return (cli_clock_reading){.boot = cli_boottime_ms(), .wall = cli_wall_ms()};
}

void cli_clock_check_begin(cli_clock_check *c, cli_clock_reading now)
{
  c->first = now;
  c->last = now;
  c->longest = 0;
}

void cli_clock_check_sample(cli_clock_check *c, cli_clock_reading now)
{
  if (now.boot - c->last.boot > c->longest)
    c->longest = now.boot - c->last.boot;
  c->last = now;
}

static void on_clock_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
  (void)loop;
  (void)events;
  cli_clock_check_sample(timer->data, cli_clock_read());
}

void cli_clock_check_start(cli_clock_check *c, struct ev_loop *loop)
{
  double tick = CLI_CLOCK_CHECK_TICK_MS / 1000.0;

  ev_timer_init(&c->ticker, on_clock_tick, tick, tick);
  c->ticker.data = c;
  ev_timer_start(loop, &c->ticker);
}

void cli_clock_check_stop(cli_clock_check *c, struct ev_loop *loop)
{
  ev_timer_stop(loop, &c->ticker);
}

int64_t cli_clock_check_took_ms(const cli_clock_check *c)
{
  return c->last.boot - c->first.boot;
}

int64_t cli_clock_check_stood_ms(const cli_clock_check *c)
{
  return c->longest >= LEAST_STAND_MS ? c->longest : 0;
}

int64_t cli_clock_check_step_ms(const cli_clock_check *c)
{
  int64_t step = c->last.wall - c->first.wall - cli_clock_check_took_ms(c);

  return step > -LEAST_STEP_MS && step < LEAST_STEP_MS ? 0 : step;
}
