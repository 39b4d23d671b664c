/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "cli/session/interrupt.h"
#include "net/loop.h"
#include "support/suite.h"

/* The contract of net/loop.h, for any implementation of it. */

enum { MAX_SECONDS = 20, LONG_MS = 1000 * 1000 };

/* As a time for lk__loop_set_timer(): the timer is stopped. */
enum { STOP = -1 };

static lk_loop *loop;
static bool done; /* ends lk__loop_run() */

static void open_loop(void)
{
  alarm(MAX_SECONDS); /* ends this test if it hangs */
  done = false;
  ck_assert_int_eq(lk__loop_new(&loop, &lk__mem_libc), 0);
}

static void close_loop(void)
{
  lk__loop_free(loop);
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
  lk__loop_run(loop, &done);
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
  lk__loop_run(loop, &done);
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
  lk__loop_run(loop, &done);
  ck_assert_int_eq(reads.events, LK_LOOP_READ);
  lk__loop_stop_io(loop, &reads.base);

  /* The writing end of a pipe that has no reader. */
  done = false;
  writes.base.fd = write_pipe[1];
  lk__loop_set_io(loop, &writes.base, LK_LOOP_READ);
  lk__loop_run(loop, &done);
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
  lk__loop_run(loop, &done);
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
  int last_call; /* the run ends at this call, counted from 1 */
} counted_hook;

static void on_counted_hook(lk_loop_hook *h)
{
  counted_hook *c = LK_OWNER(h, counted_hook, base);

  c->calls++;
  done = c->calls == c->last_call;
}

START_TEST(run_that_a_hook_ends_does_not_wait)
{
  counted_hook hook = {.base.before_wait = on_counted_hook, .last_call = 1};

  open_loop();
  lk__loop_ref(loop);
  lk__loop_start_hook(loop, &hook.base);
  lk__loop_run(loop, &done);
  ck_assert_int_eq(hook.calls, 1);
  lk__loop_stop_hook(loop, &hook.base);
  close_loop();
}
END_TEST

typedef struct feeding_hook {
  lk_loop_hook base;
  counted_io io;
} feeding_hook;

static void on_feeding_hook(lk_loop_hook *h)
{
  feeding_hook *f = LK_OWNER(h, feeding_hook, base);

  loop->type->feed_io(loop, &f->io.base, LK_LOOP_READ);
}

START_TEST(run_that_a_fed_watcher_ends_does_not_wait)
{
  feeding_hook hook = {.base.before_wait = on_feeding_hook,
                       .io.base = {.on_events = on_counted_io, .fd = -1}};

  open_loop();
  lk__loop_ref(loop);
  lk__loop_start_hook(loop, &hook.base);
  lk__loop_run(loop, &done);
  ck_assert_int_eq(hook.io.calls, 1);
  lk__loop_stop_io(loop, &hook.io.base);
  lk__loop_stop_hook(loop, &hook.base);
  close_loop();
}
END_TEST

START_TEST(hook_is_called_before_each_wait)
{
  counted_hook hook = {.base.before_wait = on_counted_hook, .last_call = 3};
  counted_io io = {.base.on_events = on_counted_io};

  open_loop();
  lk__loop_ref(loop);
  lk__loop_start_hook(loop, &hook.base);
  io.base.fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  lk__loop_set_io(loop, &io.base, LK_LOOP_READ);
  /* The descriptor ends two runs, and the third call of the hook the last. */
  for (int i = 0; i < 2; i++, done = false)
    lk__loop_run(loop, &done);
  lk__loop_run(loop, &done);
  ck_assert_int_eq(hook.calls, 3);
  ck_assert_int_eq(io.calls, 2);
  lk__loop_stop_io(loop, &io.base);
  lk__loop_stop_hook(loop, &hook.base);
  close(io.base.fd);
  close_loop();
}
END_TEST

/* ---- interrupts of the command ------------------------------------------- */

static void interrupt_twice(void)
{
  cli_interrupt interrupt;

  open_loop();
  cli_interrupt_open(&interrupt, loop, &done);
  raise(SIGTERM);
  lk__loop_run(loop, &done);
  ck_assert(done);
  raise(SIGINT);
  cli_interrupt_close(&interrupt);
  close_loop();
}

START_TEST(interrupt_ends_the_run_and_a_second_one_is_discarded)
{
  interrupt_twice();
}
END_TEST

START_TEST(interrupt_needs_no_signalfd)
{
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_signalfd4, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {sizeof steps / sizeof steps[0], steps};

  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    SKIP_TEST("this system has no filters for system calls");
  interrupt_twice();
}
END_TEST

START_TEST(ignored_signal_is_no_interrupt)
{
  counted_timer last = {.base.on_timer = on_last_timer};
  cli_interrupt interrupt;

  open_loop();
  ck_assert(signal(SIGHUP, SIG_IGN) != SIG_ERR);
  cli_interrupt_open(&interrupt, loop, &done);
  lk__loop_set_timer(loop, &last.base, 50);
  raise(SIGHUP);
  lk__loop_run(loop, &done);
  ck_assert_int_eq(last.calls, 1);
  cli_interrupt_close(&interrupt);
  close_loop();
}
END_TEST

#ifdef HAVE_SIGNALFD
START_TEST(without_a_descriptor_for_interrupts_the_signals_are_not_blocked)
{
  struct rlimit before, none;
  cli_interrupt interrupt;
  sigset_t blocked;

  open_loop();
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = (struct rlimit){0, before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  cli_interrupt_open(&interrupt, loop, &done);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
  ck_assert_int_eq(sigismember(&blocked, SIGTERM), 0);
  lk__loop_run(loop, &done); /* nothing keeps it running */
  cli_interrupt_close(&interrupt);
  close_loop();
}
END_TEST
#else
START_TEST(without_a_descriptor_for_interrupts_the_signals_are_not_blocked)
{
  SKIP_TEST("without signalfd, interrupts need no descriptor");
}
END_TEST
#endif

SUITE("loop", timer_calls_once_at_the_last_time_that_was_set,
      timer_is_not_early_if_it_was_set_long_after_the_last_wait,
      end_of_the_peer_counts_as_the_event_that_is_watched,
      nothing_but_hold_keeps_the_loop_running,
      run_that_a_hook_ends_does_not_wait,
      run_that_a_fed_watcher_ends_does_not_wait,
      hook_is_called_before_each_wait,
      interrupt_ends_the_run_and_a_second_one_is_discarded,
      interrupt_needs_no_signalfd, ignored_signal_is_no_interrupt,
      without_a_descriptor_for_interrupts_the_signals_are_not_blocked)
