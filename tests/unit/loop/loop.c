/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "support/suite.h"
#include "unit/loop/test_loop.h"

/* The contract of net/loop.h, for each implementation of it. */

enum { MAX_SECONDS = 20, LONG_MS = 1000 * 1000 };

/* As a time for lk__loop_set_timer(): the timer is stopped. */
enum { STOP = -1 };

static lk_loop *loop;
static bool done; /* ends test_loop_run() */

static void open_loop(void)
{
  alarm(MAX_SECONDS); /* ends this test if it hangs */
  done = false;
  loop = test_loop_new();
}

static void close_loop(void)
{
  test_loop_free(loop);
  alarm(0);
}

/* ---- timers -------------------------------------------------------------- */

typedef struct counted_timer {
  lk_loop_timer base;
  int calls;
} counted_timer;

static void on_counted_timer(lk_loop_timer *t)
{
  LK_OWNER(t, counted_timer, base)->calls++;
}

static void on_last_timer(lk_loop_timer *t)
{
  on_counted_timer(t);
  done = true;
}

static int64_t now_us(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

START_TEST(timer_is_not_early_if_it_was_set_long_after_the_last_wait)
{
  counted_timer last = {.base.on_timer = on_last_timer};

  open_loop();
  lk__loop_ref(loop);
  usleep(30 * 1000);

  int64_t before_us = now_us();

  lk__loop_set_timer(loop, &last.base, 50);
  test_loop_run(loop, &done);
  ck_assert_int_ge(now_us() - before_us, 50 * 1000);
  close_loop();
}
END_TEST

START_TEST(timer_calls_once_at_the_last_time_that_was_set)
{
  counted_timer moved = {.base.on_timer = on_counted_timer};
  counted_timer stopped = {.base.on_timer = on_counted_timer};
  counted_timer last = {.base.on_timer = on_last_timer};

  open_loop();
  lk__loop_ref(loop);
  lk__loop_set_timer(loop, &moved.base, LONG_MS);
  lk__loop_set_timer(loop, &moved.base, 0);
  lk__loop_set_timer(loop, &stopped.base, 0);
  lk__loop_set_timer(loop, &stopped.base, STOP);
  lk__loop_set_timer(loop, &last.base, 50);
  test_loop_run(loop, &done);
  ck_assert_int_eq(moved.calls, 1);
  ck_assert_int_eq(stopped.calls, 0);
  ck_assert_int_eq(last.calls, 1);
  close_loop();
}
END_TEST

/* ---- descriptors --------------------------------------------------------- */

typedef struct counted_io {
  lk_loop_io base;
  int calls;
  int events; /* events of the last call */
} counted_io;

static void on_counted_io(lk_loop_io *io, int events)
{
  counted_io *c = LK_OWNER(io, counted_io, base);

  c->calls++;
  c->events = events;
  done = true;
}

START_TEST(end_of_the_peer_counts_as_the_event_that_is_watched)
{
  counted_io reads = {.base.on_events = on_counted_io};
  counted_io writes = {.base.on_events = on_counted_io};
  int read_pipe[2], write_pipe[2];

  open_loop();
  lk__loop_ref(loop);
  ck_assert_int_eq(pipe(read_pipe), 0);
  ck_assert_int_eq(pipe(write_pipe), 0);
  close(read_pipe[1]);
  close(write_pipe[0]);
  reads.base.fd = read_pipe[0];
  lk__loop_set_io(loop, &reads.base, LK_LOOP_READ);
  test_loop_run(loop, &done);
  ck_assert_int_eq(reads.events, LK_LOOP_READ);
  lk__loop_stop_io(loop, &reads.base);

  /* The writing end of a pipe that has no reader. */
  done = false;
  writes.base.fd = write_pipe[1];
  lk__loop_set_io(loop, &writes.base, LK_LOOP_READ);
  test_loop_run(loop, &done);
  ck_assert_int_eq(writes.events, LK_LOOP_READ);
  lk__loop_stop_io(loop, &writes.base);
  close(read_pipe[0]);
  close(write_pipe[1]);
  close_loop();
}
END_TEST

START_TEST(nothing_but_hold_keeps_the_loop_running)
{
  counted_timer timer = {.base.on_timer = on_counted_timer};
  counted_io io = {.base.on_events = on_counted_io};
  int ends[2];

  open_loop();
  ck_assert_int_eq(pipe(ends), 0);
  io.base.fd = ends[0];
  lk__loop_set_io(loop, &io.base, LK_LOOP_READ);
  lk__loop_set_timer(loop, &timer.base, LONG_MS);
  lk__loop_ref(loop);
  lk__loop_unref(loop);
  test_loop_run(loop, &done);
  ck_assert_int_eq(io.calls, 0);
  ck_assert_int_eq(timer.calls, 0);
  lk__loop_stop_io(loop, &io.base);
  lk__loop_set_timer(loop, &timer.base, STOP);
  close(ends[0]);
  close(ends[1]);
  close_loop();
}
END_TEST

/* ---- hooks --------------------------------------------------------------- */

typedef struct counted_hook {
  lk_loop_hook base;
  int calls;
} counted_hook;

static void on_counted_hook(lk_loop_hook *h)
{
  LK_OWNER(h, counted_hook, base)->calls++;
}

START_TEST(hook_is_called_before_each_wait)
{
  counted_hook hook = {.base.before_wait = on_counted_hook};
  counted_io io = {.base.on_events = on_counted_io};

  open_loop();
  lk__loop_ref(loop);
  lk__loop_start_hook(loop, &hook.base);
  io.base.fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  lk__loop_set_io(loop, &io.base, LK_LOOP_READ);
  for (int i = 0; i < 3; i++, done = false)
    test_loop_run(loop, &done); /* the descriptor ends it */
  ck_assert_int_eq(hook.calls, 3);
  ck_assert_int_eq(io.calls, 3);
  lk__loop_stop_io(loop, &io.base);
  lk__loop_stop_hook(loop, &hook.base);
  close(io.base.fd);
  close_loop();
}
END_TEST

SUITE("loop", timer_calls_once_at_the_last_time_that_was_set,
      timer_is_not_early_if_it_was_set_long_after_the_last_wait,
      end_of_the_peer_counts_as_the_event_that_is_watched,
      nothing_but_hold_keeps_the_loop_running, hook_is_called_before_each_wait)
