/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <time.h>

#include "cli/clocks.h"
#include "cli/guard.h"

/* A clock is kept right by less than 1 ms a second. */
enum { LEAST_STAND_MS = 500, LEAST_STEP_MS = 200 };

cli_moment cli_clocks_now(void)
{
  cli_moment m = {.boot = cli_guard_clock()};
  struct timespec t = {0, 0};

  clock_gettime(CLOCK_REALTIME, &t);
  m.wall = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
  return m;
}

void cli_clocks_begin(cli_clocks *c, cli_moment now)
{
  c->first = now;
  c->last = now;
  c->longest = 0;
}

void cli_clocks_look(cli_clocks *c, cli_moment now)
{
  if (now.boot - c->last.boot > c->longest)
    c->longest = now.boot - c->last.boot;
  c->last = now;
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
  (void)loop;
  (void)events;
  cli_clocks_look(timer->data, cli_clocks_now());
}

void cli_clocks_start(cli_clocks *c, struct ev_loop *loop)
{
  double tick = CLI_CLOCKS_TICK_MS / 1000.0;

  ev_timer_init(&c->ticker, on_tick, tick, tick);
  c->ticker.data = c;
  ev_timer_start(loop, &c->ticker);
}

void cli_clocks_stop(cli_clocks *c, struct ev_loop *loop)
{
  ev_timer_stop(loop, &c->ticker);
}

int64_t cli_clocks_took(const cli_clocks *c)
{
  return c->last.boot - c->first.boot;
}

int64_t cli_clocks_stood(const cli_clocks *c)
{
  return c->longest >= LEAST_STAND_MS ? c->longest : 0;
}

int64_t cli_clocks_set(const cli_clocks *c)
{
  int64_t step = c->last.wall - c->first.wall - cli_clocks_took(c);

  return step > -LEAST_STEP_MS && step < LEAST_STEP_MS ? 0 : step;
}
