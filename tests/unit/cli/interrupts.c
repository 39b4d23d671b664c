/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/session/interrupt.h"
#include "poll/loop.h"
#include "support/suite.h"
#include "unit/cli/forbidden_call.h"

enum { MAX_SECONDS = 20 };

static lk_loop *loop;
static bool done; /* ends lk__poll_loop_run() */

static void open_loop(void)
{
  alarm(MAX_SECONDS); /* ends this test if it hangs */
  done = false;
  ck_assert_int_eq(lk__poll_loop_new(&loop, &lk__mem_libc), 0);
}

static void close_loop(void)
{
  lk__poll_loop_free(loop);
  alarm(0);
}

static void interrupt_twice(void)
{
  cli_interrupt interrupt;

  open_loop();
  cli_interrupt_open(&interrupt, loop, &done);
  raise(SIGTERM);
  lk__poll_loop_run(loop, &done);
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
  if (!forbid_call(SYS_signalfd4))
    SKIP_TEST("this system has no filters for system calls");
  interrupt_twice();
}
END_TEST

static unsigned timer_calls;

static void on_last_timer(lk_loop_timer *t)
{
  (void)t;
  timer_calls++;
  done = true;
}

START_TEST(ignored_signal_is_no_interrupt)
{
  lk_loop_timer last = {.on_timer = on_last_timer};
  cli_interrupt interrupt;

  open_loop();
  ck_assert(signal(SIGHUP, SIG_IGN) != SIG_ERR);
  cli_interrupt_open(&interrupt, loop, &done);
  lk__loop_set_timer(loop, &last, 50);
  raise(SIGHUP);
  lk__poll_loop_run(loop, &done);
  ck_assert_uint_eq(timer_calls, 1);
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
  lk__poll_loop_run(loop, &done); /* nothing keeps it running */
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

SUITE("interrupts", interrupt_ends_the_run_and_a_second_one_is_discarded,
      interrupt_needs_no_signalfd, ignored_signal_is_no_interrupt,
      without_a_descriptor_for_interrupts_the_signals_are_not_blocked)
