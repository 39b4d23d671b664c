/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/driver.h"
#include "net/fork_check.h"
#include "net/wakeup.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
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
  /* This test needs Linux 4.14. */
  ck_assert_int_eq(o->pid, kernel_is_emulated() ? getpid() : 0);
  compare_with_child(o);
  lk__fork_check_free(o);
}
END_TEST

/* With this fault of madvise(), the process id is compared. */
static void expect_detection_by_pid(bool *fault)
{
  *fault = true;
  lk_fork_check *o = lk__fork_check_new();

  ck_assert_ptr_nonnull(o);
  ck_assert_int_eq(o->pid, getpid());
  compare_with_child(o);
  lk__fork_check_free(o);
  *fault = false;
}

START_TEST(child_is_detected_on_an_old_kernel)
{
  expect_detection_by_pid(&calls.no_wipe_on_fork);
}
END_TEST

START_TEST(child_is_detected_if_the_kernel_accepts_any_advice)
{
  expect_detection_by_pid(&calls.any_advice);
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

/* An alarm on a loop of its own. */
typedef struct bell {
  struct ev_loop *ev;
  lk_ev_loop loop;
  lk_clock clock;
  lk_alarm alarm;
  unsigned rung;
} bell;

static void on_ring(lk_alarm *a)
{
  bell *b = LK_OWNER(a, bell, alarm);

  lk__alarm_clear(a);
  b->rung++;
}

static void bell_open(bell *b)
{
  memset(b, 0, sizeof *b);
  b->ev = ev_loop_new(EVFLAG_AUTO);
  lk__ev_loop_attach(&b->loop, b->ev);
  ck_assert_int_eq(lk__clock_open(&b->clock), 0);
  b->alarm.on_alarm = on_ring;
  lk__alarm_start(&b->alarm, &b->loop.base, &b->clock);
  ev_ref(b->ev); /* an alarm does not keep the loop running */
}

static void bell_close(bell *b)
{
  ev_unref(b->ev);
  lk__alarm_stop(&b->alarm);
  lk__clock_close(&b->clock);
  ev_loop_destroy(b->ev);
}

/* Without a timerfd, the alarm may ring early, and its user sets it again. */
static void wait_until_rung_after(bell *b, int64_t due)
{
  do {
    b->rung = 0;
    ev_now_update(b->ev);
    lk__alarm_set(&b->alarm, due);
    while (b->rung == 0)
      ev_run(b->ev, EVRUN_ONCE);
    ck_assert_uint_eq(b->rung, 1);
    ck_assert(b->clock.timer_fd < 0 || lk__clock_now(&b->clock) >= due);
  } while (lk__clock_now(&b->clock) < due);
}

static void expect_silence(bell *b)
{
  b->rung = 0;
  for (int i = 0; i < 3; i++)
    ev_run(b->ev, EVRUN_NOWAIT);
  ck_assert_uint_eq(b->rung, 0);
}

static void ring_once(clockid_t id, bool has_timerfd)
{
  bell b;

  bell_open(&b);
  ck_assert_int_eq(b.clock.id, id);
  ck_assert_int_eq(b.clock.timer_fd >= 0, has_timerfd);
  int64_t due = lk__clock_now(&b.clock) + 3;

  lk__alarm_set(&b.alarm, INT64_MAX);
  lk__alarm_set(&b.alarm, due + 100000);
  lk__alarm_set(&b.alarm, due);
  lk__alarm_set(&b.alarm, due + 100000); /* a later time has no effect */
  wait_until_rung_after(&b, due);
  expect_silence(&b);
  wait_until_rung_after(&b, due - 1000); /* has passed: rings at once */
  for (int64_t at = -5; at <= 0; at++)
    wait_until_rung_after(&b, at);
  lk__alarm_clear(&b.alarm); /* returns although the alarm has not rung */
  lk__alarm_set(&b.alarm, lk__clock_now(&b.clock));
  lk__alarm_stop(&b.alarm);
  expect_silence(&b);
  bell_close(&b);
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
  lk_fork_check *fork_check = lk__fork_check_new();
  lk_ev_loop on;
  lk_wakeup b;

  lk__ev_loop_attach(&on, loop);
  close(STDIN_FILENO);
  ck_assert_int_eq(lk__wakeup_open(&b, &on.base, fork_check, do_nothing, NULL),
                   0);
  ck_assert_int_eq(b.io.fd, STDIN_FILENO);
  lk__wakeup_close(&b);
  lk__fork_check_free(fork_check);
  ev_loop_destroy(loop);
  dup2(own, STDIN_FILENO);
  close(own);
}
END_TEST

#ifdef HAVE_TIMERFD_CREATE
static const bool has_timerfd = true;
#else
static const bool has_timerfd = false;
#endif

START_TEST(timer_is_set_to_the_millisecond)
{
  lk_clock c;

  ck_assert_int_eq(lk__clock_open(&c), 0);
  int64_t at = lk__clock_now(&c) + 100000;

  for (int i = 0; has_timerfd && i < 1000; i++, at--) {
    lk__clock_set_timer(&c, at);
    ck_assert_int_eq(calls.timer_value.tv_sec * 1000 +
                         calls.timer_value.tv_nsec / 1000000,
                     at);
    ck_assert_int_eq(calls.timer_value.tv_nsec % 1000000, 0);
  }
  lk__clock_set_timer(&c, INT64_MAX); /* never */
  ck_assert_int_eq(calls.timer_value.tv_sec + calls.timer_value.tv_nsec, 0);
  lk__clock_close(&c);
}
END_TEST

START_TEST(alarm_fires_at_its_time)
{
  ring_once(CLOCK_BOOTTIME, has_timerfd);
}
END_TEST

START_TEST(alarm_fires_at_its_time_without_boottime)
{
  calls.no_boottime = true;
  ring_once(has_timerfd ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, has_timerfd);
  calls.no_boottime = false;
}
END_TEST

START_TEST(alarm_fires_at_its_time_without_timerfd)
{
  const bool without_timerfd = false;

  calls.timer_error = ENOSYS;
  ring_once(CLOCK_BOOTTIME, without_timerfd);
  calls.timer_error = EPERM; /* as of a filter of system calls */
  ring_once(CLOCK_BOOTTIME, without_timerfd);
  calls.timer_error = 0;
}
END_TEST

static void on_time_limit(struct ev_loop *ev, ev_timer *w, int revents)
{
  (void)ev;
  (void)w;
  (void)revents;
  ck_abort_msg("the alarm did not ring");
}

/* A suspended machine may stop the timers of the loop. */
START_TEST(alarm_without_timerfd_looks_at_its_clock_each_second)
{
  ev_timer limit;
  bell b;

  calls.timer_error = ENOSYS;
  bell_open(&b);
  calls.timer_error = 0;
  int64_t began = lk__clock_now(&b.clock);

  ev_now_update(b.ev);
  ev_timer_init(&limit, on_time_limit, 10, 0);
  ev_timer_start(b.ev, &limit);
  lk__alarm_set(&b.alarm, began + 3600 * 1000);
  while (b.rung == 0)
    ev_run(b.ev, EVRUN_ONCE);
  ev_timer_stop(b.ev, &limit);
  ck_assert_int_ge(lk__clock_now(&b.clock), began + LK_ALARM_MAX_MS / 2);
  bell_close(&b);
}
END_TEST

START_TEST(clock_without_free_descriptors_is_refused)
{
  lk_clock c;

  calls.timer_error = EMFILE;
  ck_assert_int_eq(lk__clock_open(&c), has_timerfd ? EMFILE : 0);
  calls.timer_error = 0;
}
END_TEST

/* ---- flags --------------------------------------------------------------- */

static bool is_readable(const lk_flag_fd *f)
{
  struct pollfd p = {.fd = f->read_fd, .events = POLLIN};

  return poll(&p, 1, 0) == 1;
}

static void use_flag(bool is_pipe)
{
  lk_flag_fd f;

  ck_assert_int_eq(lk__flag_fd_open(&f), 0);
  ck_assert_int_eq(f.read_fd != f.write_fd, is_pipe);
  ck_assert_int_eq(fcntl(f.read_fd, F_GETFD), FD_CLOEXEC);
  ck_assert_int_eq(fcntl(f.write_fd, F_GETFD), FD_CLOEXEC);
  ck_assert(!is_readable(&f));
  lk__flag_fd_clear(&f); /* does not wait */
  for (int round = 0; round < 3; round++) {
    /* More than a pipe has room for. */
    for (int i = 0; i < 10000; i++)
      lk__flag_fd_set(&f);
    ck_assert(is_readable(&f));
    lk__flag_fd_clear(&f);
    ck_assert(!is_readable(&f));
  }
  lk__flag_fd_close(&f);
  lk__flag_fd_close(&f); /* has no effect */
}

START_TEST(flag_is_readable_until_it_is_cleared)
{
  lk_flag_fd f;
  int refused = 0;

  ck_assert_int_eq(lk__flag_fd_open(&f), 0);
  const bool is_pipe = f.read_fd != f.write_fd;
  int before = f.read_fd;

  lk__flag_fd_close(&f);
  use_flag(is_pipe);
  calls.eventfd_error = ENOSYS;
  use_flag(true);
  calls.eventfd_error = EPERM;
  use_flag(true);
  calls.eventfd_error = EMFILE;
  refused = lk__flag_fd_open(&f);
  calls.eventfd_error = 0;
  ck_assert_int_eq(refused, is_pipe ? 0 : EMFILE);
  lk__flag_fd_close(&f);
  ck_assert_int_eq(lk__flag_fd_open(&f), 0);
  ck_assert_int_eq(f.read_fd, before); /* all descriptors were closed */
  lk__flag_fd_close(&f);
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
      child_is_detected_on_an_old_kernel,
      child_is_detected_if_the_kernel_accepts_any_advice,
      random_bytes_are_used_once,
      random_bytes_are_used_once_when_getrandom_fails,
      clock_returns_whole_milliseconds, wakeup_works_with_descriptor_0,
      timer_is_set_to_the_millisecond, alarm_fires_at_its_time,
      alarm_fires_at_its_time_without_boottime,
      alarm_fires_at_its_time_without_timerfd,
      alarm_without_timerfd_looks_at_its_clock_each_second,
      clock_without_free_descriptors_is_refused,
      flag_is_readable_until_it_is_cleared,
      fork_check_that_is_freed_leaves_no_page)
