/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/support/test_driver.h"

#include <ev.h>
#include <latchkey/ev.h>
#include <stdio.h>
#include <stdlib.h>

static struct ev_loop *loop;
static lk_ev *ev;

_Static_assert(sizeof(ev_io) <= sizeof(((test_watch *)0)->room), "room");

static ev_io *io_of(test_watch *w)
{
  return (ev_io *)(void *)w->room.bytes;
}

void test_driver_open(void)
{
  loop = ev_loop_new(0);
  if (loop == NULL || lk_ev_new(&ev, loop, NULL) != 0) {
    fputs("cannot make a loop\n", stderr);
    exit(EXIT_FAILURE);
  }
}

void test_driver_close(void)
{
  lk_ev_free(ev);
  ev_loop_destroy(loop);
}

int test_driver_client_new(lk_client **out, const lk_client_config *config)
{
  return lk_ev_client_new(out, ev, config);
}

static void on_io(struct ev_loop *l, ev_io *io, int revents)
{
  test_watch *w = io->data;

  (void)l;
  (void)revents;
  w->on_readable(w);
}

void test_watch_start(test_watch *w)
{
  ev_io_init(io_of(w), on_io, w->fd, EV_READ);
  io_of(w)->data = w;
  ev_io_start(loop, io_of(w));
  w->started = true;
}

void test_watch_stop(test_watch *w)
{
  if (w->started)
    ev_io_stop(loop, io_of(w));
  w->started = false;
}

static void on_limit(struct ev_loop *l, ev_timer *t, int revents)
{
  (void)l;
  (void)t;
  (void)revents;
}

void test_driver_turn(int timeout_ms)
{
  ev_timer limit;

  if (timeout_ms == 0) {
    ev_run(loop, EVRUN_NOWAIT);
    return;
  }
  ev_timer_init(&limit, on_limit, timeout_ms / 1000., 0.);
  if (timeout_ms > 0) {
    ev_now_update(loop);
    ev_timer_start(loop, &limit);
  }
  ev_run(loop, EVRUN_ONCE);
  ev_timer_stop(loop, &limit);
}
