/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/list.h"
#include "cli/doctor/clock_check.h"
#include "cli/output/system_clocks.h"

/* Shorter pauses are usual under load, and are not reported. */
enum { MIN_PAUSE_MS = 500 };

/* Smaller steps are not reported: they can be clock synchronization, which
   corrects a clock by up to 1 ms a second. */
enum { MIN_STEP_MS = 200 };

cli_clock_reading cli_clock_read(void)
{
  return (cli_clock_reading){.boot_ms = cli_boottime_ms(),
                             .wall_ms = cli_wall_ms()};
}

void cli_clock_check_begin(cli_clock_check *c, cli_clock_reading now)
{
  c->first = now;
  c->last = now;
  c->longest_gap_ms = 0;
}

void cli_clock_check_sample(cli_clock_check *c, cli_clock_reading now)
{
  int64_t gap_ms = now.boot_ms - c->last.boot_ms;

  if (gap_ms > c->longest_gap_ms)
    c->longest_gap_ms = gap_ms;
  c->last = now;
}

static void on_clock_tick(lk_loop_timer *t)
{
  cli_clock_check *c = LK_OWNER(t, cli_clock_check, ticker);

  lk__loop_set_timer(c->loop, t, CLI_CLOCK_CHECK_TICK_MS);
  cli_clock_check_sample(c, cli_clock_read());
}

void cli_clock_check_start(cli_clock_check *c, lk_loop *loop)
{
  c->loop = loop;
  c->ticker.on_timer = on_clock_tick;
  lk__loop_set_timer(loop, &c->ticker, CLI_CLOCK_CHECK_TICK_MS);
}

void cli_clock_check_stop(cli_clock_check *c)
{
  lk__loop_stop_timer(c->loop, &c->ticker);
}

int64_t cli_clock_check_took_ms(const cli_clock_check *c)
{
  return c->last.boot_ms - c->first.boot_ms;
}

int64_t cli_clock_check_paused_ms(const cli_clock_check *c)
{
  return c->longest_gap_ms >= MIN_PAUSE_MS ? c->longest_gap_ms : 0;
}

int64_t cli_clock_check_step_ms(const cli_clock_check *c)
{
  int64_t wall_took_ms = c->last.wall_ms - c->first.wall_ms;
  int64_t step_ms = wall_took_ms - cli_clock_check_took_ms(c);

  return step_ms > -MIN_STEP_MS && step_ms < MIN_STEP_MS ? 0 : step_ms;
}
