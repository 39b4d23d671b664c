/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/clock.h"
#include "net/fork_check.h"
#include "net/wakeup.h"

#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ev/loop.h"
#include "support/suite.h"
#include "unit/fake/calls.h"

/* Draw random bytes in parent and child after a fork: they must differ. */
static void compare_with_child(lk_fork_check *o)
{
  unsigned char here[32], there[32];
  int ends[2], status;
  pid_t child;

  ck_assert_int_eq(pipe(ends), 0);
  child = fork();
  if (child == 0) {
    lk__fork_check_random(o, there, sizeof there);
    _exit(write(ends[1], there, sizeof there) != sizeof there ||
          !lk__fork_check_in_child(o));
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(read(ends[0], there, sizeof there), sizeof there);
  lk__fork_check_random(o, here, sizeof here);
  ck_assert_int_ne(memcmp(here, there, sizeof here), 0);
  ck_assert(!lk__fork_check_in_child(o));
  close(ends[0]);
  close(ends[1]);
}

START_TEST(child_is_detected_and_has_other_random_bytes)
{
  lk_fork_check *o = lk__fork_check_new();

  ck_assert_ptr_nonnull(o);
  ck_assert_int_eq(o->pid, 0); /* this test needs Linux 4.14 */
  compare_with_child(o);
  lk__fork_check_free(o);
}
END_TEST

START_TEST(child_is_detected_on_an_old_kernel)
{
  calls.no_wipe_on_fork = true;
  lk_fork_check *o = lk__fork_check_new();

  ck_assert_ptr_nonnull(o);
  ck_assert_int_eq(o->pid, getpid());
  compare_with_child(o);
  lk__fork_check_free(o);
  calls.no_wipe_on_fork = false;
}
END_TEST

enum { PIECE = 16 }; /* bytes that are compared */

static bool is_same_piece(const unsigned char *a, const unsigned char *b)
{
  return memcmp(a, b, PIECE) == 0;
}

static void expect_no_repetition(lk_fork_check *o)
{
  unsigned char drawn[200][PIECE];

  for (size_t i = 0; i < 200; i++)
    lk__fork_check_random(o, drawn[i], PIECE);
  for (size_t i = 0; i < 200; i++)
    for (size_t k = 0; k < i; k++)
      ck_assert(!is_same_piece(drawn[i], drawn[k]));
}

START_TEST(random_bytes_are_used_once)
{
  unsigned char many[1000];
  lk_fork_check *o = lk__fork_check_new();

  ck_assert_ptr_nonnull(o);
  expect_no_repetition(o);
  memset(many, 0, sizeof many);
  lk__fork_check_random(o, many, sizeof many);
  for (size_t i = 0; i + 2 * PIECE <= sizeof many; i += PIECE)
    ck_assert(!is_same_piece(many + i, many + i + PIECE));
  lk__fork_check_free(o);
  lk__fork_check_free(NULL);
}
END_TEST

START_TEST(random_bytes_are_used_once_when_getrandom_fails)
{
  lk_fork_check *o = lk__fork_check_new();

  ck_assert_ptr_nonnull(o);
  calls.no_random = true;
  expect_no_repetition(o);
  lk__fork_check_free(o);
  ck_assert_ptr_null(lk__fork_check_new());
  calls.no_random = false;
}
END_TEST

static bool rings(const lk_clock *c, int timeout_ms)
{
  struct pollfd p = {.fd = c->fd, .events = POLLIN};

  return poll(&p, 1, timeout_ms) == 1;
}

static void ring_once(clockid_t id)
{
  lk_clock c;

  ck_assert_int_eq(lk__clock_open(&c), 0);
  ck_assert_int_eq(c.id, id);
  int64_t due = lk__clock_now(&c) + 3;

  lk__clock_set_alarm(&c, INT64_MAX);
  lk__clock_set_alarm(&c, due + 100000);
  lk__clock_set_alarm(&c, due);
  lk__clock_set_alarm(&c, due + 100000); /* a later time has no effect */
  ck_assert(rings(&c, -1));
  ck_assert_int_ge(lk__clock_now(&c), due);
  lk__clock_clear_alarm(&c);
  ck_assert(!rings(&c, 0));
  lk__clock_set_alarm(&c, due - 1000); /* has passed: fires at once */
  ck_assert(rings(&c, -1));
  lk__clock_clear_alarm(&c);
  for (int64_t at = -5; at <= 0; at++) {
    lk__clock_set_alarm(&c, at);
    ck_assert(rings(&c, -1));
    lk__clock_clear_alarm(&c);
  }
  lk__clock_clear_alarm(&c); /* returns although the alarm has not fired */
  lk__clock_close(&c);
}

static int64_t whole_ms(clockid_t id)
{
  struct timespec t;

  ck_assert_int_eq(clock_gettime(id, &t), 0);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* So many readings that some come within a microsecond before a millisecond
   ends: the result must be rounded down. */
START_TEST(clock_returns_whole_milliseconds)
{
  lk_clock c;

  ck_assert_int_eq(lk__clock_open(&c), 0);
  for (int i = 0; i < 50000; i++) {
    int64_t before = whole_ms(c.id), now = lk__clock_now(&c);

    ck_assert(before <= now && now <= whole_ms(c.id));
  }
  lk__clock_close(&c);
}
END_TEST

static void do_nothing(void *arg)
{
  (void)arg;
}

START_TEST(wakeup_works_with_descriptor_0)
{
  struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
  int own = dup(STDIN_FILENO);
  lk_ev_loop on;
  lk_wakeup b;

  lk__ev_loop_attach(&on, loop);
  close(STDIN_FILENO);
  ck_assert_int_eq(lk__wakeup_open(&b, &on.base, do_nothing, NULL), 0);
  ck_assert_int_eq(b.io.fd, STDIN_FILENO);
  lk__wakeup_close(&b);
  ev_loop_destroy(loop);
  dup2(own, STDIN_FILENO);
  close(own);
}
END_TEST

START_TEST(alarm_is_set_to_the_millisecond)
{
  lk_clock c;

  ck_assert_int_eq(lk__clock_open(&c), 0);
  int64_t at = lk__clock_now(&c) + 100000;

  for (int i = 0; i < 1000; i++, at--) {
    lk__clock_set_alarm(&c, at);
    ck_assert_int_eq(calls.timer_value.tv_sec * 1000 +
                         calls.timer_value.tv_nsec / 1000000,
                     at);
    ck_assert_int_eq(calls.timer_value.tv_nsec % 1000000, 0);
  }
  lk__clock_close(&c);
}
END_TEST

START_TEST(alarm_fires_at_its_time)
{
  ring_once(CLOCK_BOOTTIME);
}
END_TEST

START_TEST(alarm_fires_at_its_time_without_boottime)
{
  calls.no_boottime = true;
  ring_once(CLOCK_MONOTONIC);
  calls.no_timer = true;

  lk_clock c;

  ck_assert_int_ne(lk__clock_open(&c), 0);
  calls.no_boottime = false;
  calls.no_timer = false;
}
END_TEST

/* The number of memory pages that this process has mapped. */
static long mapped(void)
{
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");

  ck_assert_ptr_nonnull(f);
  ck_assert_int_eq(fscanf(f, "%ld", &pages), 1);
  fclose(f);
  return pages;
}

START_TEST(fork_check_that_is_freed_leaves_no_page)
{
  long before = mapped();

  for (int i = 0; i < 1000; i++)
    lk__fork_check_free(lk__fork_check_new());
  ck_assert_int_lt(mapped(), before + 500);
}
END_TEST

SUITE("fork_and_clock", child_is_detected_and_has_other_random_bytes,
      child_is_detected_on_an_old_kernel, random_bytes_are_used_once,
      random_bytes_are_used_once_when_getrandom_fails,
      clock_returns_whole_milliseconds, wakeup_works_with_descriptor_0,
      alarm_is_set_to_the_millisecond, alarm_fires_at_its_time,
      alarm_fires_at_its_time_without_boottime,
      fork_check_that_is_freed_leaves_no_page)
