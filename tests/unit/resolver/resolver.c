/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

#include "ev/loop.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "unit/fake/names.h"

/* This file is built once for each name service; a build without c-ares has
   one. These are the results of a lookup without memory or without a thread,
   and the result of creating a resolver without descriptors. c-ares needs no
   thread, and opens no descriptor at first. */
#if defined LK_WITH_CARES && !defined TEST_THREADS
#  define WITHOUT_MEMORY      "resolve twice.test: Out of memory|"
#  define WITHOUT_THREAD      "127.0.0.1:0 |"
#  define WITHOUT_DESCRIPTORS 0
#else
#  define WITHOUT_MEMORY      "resolve twice.test: out of memory|"
#  define WITHOUT_THREAD      "resolve twice.test: cannot start a thread|"
#  define WITHOUT_DESCRIPTORS LK_ERR_SYSTEM
#endif

static struct ev_loop *loop;
static lk_ev_loop resolver_loop;
static lk_fork_check *fork_check;
static lk_resolver *resolver;
static failing_mem mem;
static ev_prepare deliver_before_wait;
static char results[512];  /* "127.0.0.1:0 [::1]:0 | why | …" */
static unsigned completed; /* how many lookups have completed since start() */
static const bool not_forked = false;

static void on_prepare(struct ev_loop *l, ev_prepare *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  lk__resolver_deliver(resolver);
}

static void add_result(const char *text, const char *after)
{
  size_t len = strlen(results);

  snprintf(results + len, sizeof results - len, "%s%s", text, after);
}

static void on_done(lk_lookup *l, const lk_address *list, size_t count,
                    const char *why)
{
  (void)l;
  ck_assert_int_eq(why == NULL, count > 0);
  for (size_t i = 0; i < count; i++) {
    char text[LK_ADDRESS_TEXT_SIZE];

    lk__address_text(&list[i], text, sizeof text);
    add_result(text, " ");
  }
  add_result(why == NULL ? "" : why, "|");
  completed++;
  ev_break(loop, EVBREAK_ALL); /* the loop returns before it waits again */
}

static void init_lookup(lk_lookup *l)
{
  lk__list_init(&l->link);
  l->done = on_done;
}

static void start_lookup(lk_lookup *l, const char *host)
{
  init_lookup(l);
  ck_assert(lk__resolver_lookup(resolver, l, host));
}

static void start(void)
{
  results[0] = '\0';
  completed = 0;
  loop = ev_loop_new(EVFLAG_AUTO);
  ck_assert_ptr_nonnull(loop);
  lk__ev_loop_attach(&resolver_loop, loop);
  fake_names_start(loop);
  failing_mem_init(&mem);
  fork_check = lk__fork_check_new();
  ck_assert_int_eq(
      lk__resolver_new(&resolver, &resolver_loop.base, fork_check, &mem.mem),
      0);
  ev_prepare_init(&deliver_before_wait, on_prepare);
  ev_prepare_start(loop, &deliver_before_wait);
}

static void stop(void)
{
  lk__resolver_free(resolver, not_forked);
  ck_assert_uint_eq(mem.live, 0);
  lk__fork_check_free(fork_check);
  fake_names_stop();
  ev_prepare_stop(loop, &deliver_before_wait);
  ev_loop_destroy(loop);
}

static void run_until_completed(unsigned count)
{
  while (completed < count)
    ev_run(loop, EVRUN_ONCE);
}

/* Look up a host and compare the result, with the addresses in the order in
   which the name server gave them. */
static void expect_result(const char *host, const char *answer)
{
  lk_lookup l;

  results[0] = '\0';
  start_lookup(&l, host);
  run_until_completed(completed + 1);
  ck_assert_str_eq(results, answer);
}

START_TEST(all_addresses_of_a_name_are_found)
{
  start();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  results[0] = '\0';

  lk_lookup l;

  start_lookup(&l, "both.test");
  run_until_completed(2);
  ck_assert_ptr_nonnull(strstr(results, "127.0.0.1:0 "));
  ck_assert_ptr_nonnull(strstr(results, "[::1]:0 "));
  stop();
}
END_TEST

START_TEST(equal_addresses_count_once)
{
  start();
  expect_result("twice.test", "127.0.0.1:0 |");
  stop();
}
END_TEST

START_TEST(hosts_file_is_read)
{
  start();
  lk_lookup l;

  start_lookup(&l, "localhost");
  run_until_completed(1);
  ck_assert_msg(strstr(results, "127.0.0.1:0 ") != NULL ||
                    strstr(results, "[::1]:0 ") != NULL,
                "%s", results);
  stop();
}
END_TEST

static void expect_loopback(const char *host)
{
  lk_lookup l;

  results[0] = '\0';
  start_lookup(&l, host);
  run_until_completed(completed + 1);
  ck_assert_msg(strcmp(results, "127.0.0.1:0 [::1]:0 |") == 0 ||
                    strcmp(results, "[::1]:0 127.0.0.1:0 |") == 0,
                "%s: %s", host, results);
}

static void expect_failure(const char *host)
{
  lk_lookup l;

  results[0] = '\0';
  start_lookup(&l, host);
  run_until_completed(completed + 1);
  ck_assert_msg(strncmp(results, "resolve ", 8) == 0, "%s: %s", host, results);
}

START_TEST(localhost_costs_no_lookup_without_a_hosts_file)
{
  start();
  fake_names_no_hosts_file = true;
  expect_loopback("localhost");
  expect_loopback("zk.localhost");
  ck_assert_uint_eq(fake_names_lookups(), 0);
  expect_failure("localhost.test");
  ck_assert_uint_eq(fake_names_lookups(), 1);
  fake_names_no_hosts_file = false;
  stop();
}
END_TEST

/* No hosts file and no name server has these names. */
START_TEST(names_of_localhost_are_loopback_addresses)
{
  start();
  expect_loopback("zk.localhost");
  expect_loopback("zk.localhost.");
  expect_loopback("a.b.LocalHost");
  expect_failure("zk.localhost.test");
  expect_failure("localhost.test");
  expect_failure("xlocalhost");
  stop();
}
END_TEST

START_TEST(unknown_name_is_reported)
{
  start();
  lk_lookup l;

  start_lookup(&l, "none.test");
  run_until_completed(1);
  static const char prefix[] = "resolve none.test: ";
  const size_t prefix_len = sizeof prefix - 1;

  ck_assert_msg(strncmp(results, prefix, prefix_len) == 0, "%s", results);
  ck_assert_uint_gt(strlen(results), prefix_len + 5); /* a reason follows */
  ck_assert_ptr_null(strstr(results, "memory")); /* the reason is not memory */
  stop();
}
END_TEST

START_TEST(lookups_of_one_name_share_a_query)
{
  lk_lookup l[3];

  start();
  for (size_t i = 0; i < 3; i++)
    start_lookup(&l[i], "twice.test");
  run_until_completed(3);
  ck_assert_str_eq(results, "127.0.0.1:0 |127.0.0.1:0 |127.0.0.1:0 |");
  ck_assert_uint_eq(fake_names_lookups(), 1);
  start_lookup(&l[0], "twice.test");
  run_until_completed(4);
  ck_assert_uint_eq(fake_names_lookups(), 2);
  stop();
}
END_TEST

START_TEST(many_names_are_resolved_at_once)
{
  enum { NAMES = 40 };
  lk_lookup l[NAMES];

  for (int round = 0; round < 3; round++) {
    start();
    for (int i = 0; i < NAMES; i++) {
      char name[24];

      snprintf(name, sizeof name, "n%d.test", i);
      start_lookup(&l[i], name);
    }
    run_until_completed(NAMES);
    stop();
  }
}
END_TEST

START_TEST(cancelled_lookup_is_not_completed)
{
  lk_lookup l[2];

  start();
  start_lookup(&l[0], "twice.test");
  start_lookup(&l[1], "twice.test");
  lk__lookup_cancel(&l[0]);
  lk__lookup_cancel(&l[0]); /* has no effect */
  run_until_completed(1);
  ck_assert_str_eq(results, "127.0.0.1:0 |");
  for (int i = 0; i < 20; i++)
    ev_run(loop, EVRUN_NOWAIT);
  ck_assert_uint_eq(completed, 1);
  stop();
}
END_TEST

START_TEST(changed_name_server_is_used)
{
  start();
  expect_result("twice.test", "127.0.0.1:0 |");
  fake_names_stop();
  fake_names_start(loop); /* listens at another port than before */
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  stop();
}
END_TEST

static unsigned ticks; /* how many times on_tick() was called */

static void on_tick(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)w;
  (void)revents;
  if (++ticks == 20)
    ev_break(l, EVBREAK_ALL);
}

START_TEST(a_silent_name_server_does_not_stop_the_loop)
{
  lk_lookup silent, other;
  ev_timer tick;

  start();
  start_lookup(&silent, "silent.test");
  start_lookup(&other, "twice.test");
  ev_timer_init(&tick, on_tick, 0.001, 0.001);
  ev_timer_start(loop, &tick);
  while (ticks < 20)
    ev_run(loop, 0);
  ev_timer_stop(loop, &tick);
  run_until_completed(1);
  ck_assert_str_eq(results, "127.0.0.1:0 |");
  stop(); /* freeing the resolver does not wait for the reply either */
  ck_assert_uint_eq(completed, 1);
}
END_TEST

START_TEST(resolver_does_not_keep_the_loop_running)
{
  lk_lookup l;

  start();
  ev_prepare_stop(loop, &deliver_before_wait);
  start_lookup(&l, "silent.test");
  ev_run(loop, 0);
  ck_assert_uint_eq(completed, 0);
  stop();
}
END_TEST

START_TEST(lookup_without_memory_fails_or_is_refused)
{
  size_t refused = 0, failed = 0, n = 0;

  start();
  mem.for_good = true;
  do {
    lk_lookup l;

    mem.count = 0;
    mem.fail_at = ++n;
    init_lookup(&l);
    if (!lk__resolver_lookup(resolver, &l, "dead.test")) {
      refused++;
      continue;
    }
    results[0] = '\0';
    run_until_completed(completed + 1);
    if (strcmp(results, "resolve dead.test: out of memory|") == 0)
      failed++;
  } while (failing_mem_failed(&mem));
  mem.fail_at = 0;
  ck_assert_uint_ge(refused, 1);
  ck_assert_uint_ge(failed, 1);
  ck_assert_uint_le(mem.count, 5); /* fewer allocations than addresses (6) */
  ck_assert_ptr_nonnull(strstr(results, "127.9.9.5:0"));
  stop();
}
END_TEST

START_TEST(query_without_memory_or_thread_reports_that)
{
  start();
  fake_names_no_memory = true;
  expect_result("twice.test", WITHOUT_MEMORY);
  fake_names_no_memory = false;
  fake_names_no_thread = true;
  expect_result("twice.test", WITHOUT_THREAD);
  fake_names_no_thread = false;
  expect_result("twice.test", "127.0.0.1:0 |");
  stop();
}
END_TEST

START_TEST(lost_query_is_sent_again)
{
  fake_names_query_timeout_ms = 30;
  start();
  expect_result("late.test", "127.0.0.1:0 |");
  stop();
  fake_names_query_timeout_ms = 0;
}
END_TEST

START_TEST(resolver_without_memory_leaks_nothing)
{
  size_t n = 0;

  loop = ev_loop_new(EVFLAG_AUTO);
  lk__ev_loop_attach(&resolver_loop, loop);
  fork_check = lk__fork_check_new();
  do {
    failing_mem_init(&mem);
    mem.fail_at = ++n;
    if (lk__resolver_new(&resolver, &resolver_loop.base, fork_check,
                         &mem.mem) == 0)
      lk__resolver_free(resolver, not_forked);
    else
      ck_assert_ptr_null(resolver);
    ck_assert_uint_eq(mem.live, 0);
  } while (failing_mem_failed(&mem));
  /* Two allocations have failed in turn; the third attempt succeeded. */
  ck_assert_uint_eq(n, 3);
  lk__fork_check_free(fork_check);
  ev_loop_destroy(loop);
}
END_TEST

START_TEST(queries_leave_the_reference_count_of_the_loop_unchanged)
{
  start();
  int before = ev_run(loop, EVRUN_NOWAIT);

  for (int i = 0; i < 5; i++) {
    expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
    ck_assert_int_eq(ev_run(loop, EVRUN_NOWAIT), before);
  }
  stop();
}
END_TEST

/* How many iterations the loop makes within a tenth of a second. */
static unsigned count_turns(void)
{
  unsigned before = ev_iteration(loop);
  ev_timer tick;

  ticks = 0;
  ev_timer_init(&tick, on_tick, 0.1, 0);
  ev_timer_start(loop, &tick);
  while (ticks == 0)
    ev_run(loop, EVRUN_ONCE);
  return ev_iteration(loop) - before;
}

START_TEST(loop_sleeps_until_a_query_is_answered)
{
  lk_lookup l;

  start();
  start_lookup(&l, "silent.test");
  ck_assert_uint_lt(count_turns(), 50);
  stop();
}
END_TEST

START_TEST(idle_resolver_does_not_wake_the_loop)
{
  fake_names_query_timeout_ms = 10;
  start();
  expect_result("twice.test", "127.0.0.1:0 |");
  ck_assert_uint_lt(count_turns(), 4);
  stop();
  fake_names_query_timeout_ms = 0;
}
END_TEST

START_TEST(truncated_answer_does_not_delay_others)
{
  lk_lookup l[2];

  start();
  int before = ev_run(loop, EVRUN_NOWAIT);

  start_lookup(&l[0], "long.test");
  while (completed == 0 && !fake_names_tcp_waits())
    ev_run(loop, EVRUN_ONCE);
  start_lookup(&l[1], "two.test");
  run_until_completed(completed + 1);
  ck_assert_ptr_nonnull(strstr(results, "127.0.0.1:0 127.0.0.2:0 |"));
  if (fake_names_tcp_waits()) {
    ck_assert_uint_lt(count_turns(), 50);
    fake_names_accept_tcp();
  }
  run_until_completed(2);
  ck_assert_ptr_nonnull(strstr(results, "127.0.0.3:0 127.0.0.4:0 |"));
  ck_assert_int_eq(ev_run(loop, EVRUN_NOWAIT), before);
  stop();
}
END_TEST

START_TEST(undelivered_results_are_freed)
{
  lk_lookup l[2];

  start();
  start_lookup(&l[0], "two.test");
  start_lookup(&l[1], "twice.test");
  poll(NULL, 0,
       100); /* the threads end, and the loop does not take the results */
  stop();
  ck_assert_uint_eq(completed, 0);
}
END_TEST

START_TEST(resolver_without_descriptors_works_or_is_refused)
{
  struct rlimit limit, none;
  lk_resolver *other;

  start();
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = 0;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  size_t live = mem.live;
  int err = lk__resolver_new(&other, &resolver_loop.base, fork_check, &mem.mem);

  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ck_assert_int_eq(err, WITHOUT_DESCRIPTORS);
  if (err == 0)
    lk__resolver_free(other, not_forked);
  ck_assert_uint_eq(mem.live, live);
  stop();
}
END_TEST

SUITE("resolver", all_addresses_of_a_name_are_found, equal_addresses_count_once,
      hosts_file_is_read, names_of_localhost_are_loopback_addresses,
      localhost_costs_no_lookup_without_a_hosts_file, unknown_name_is_reported,
      lookups_of_one_name_share_a_query, many_names_are_resolved_at_once,
      cancelled_lookup_is_not_completed, changed_name_server_is_used,
      a_silent_name_server_does_not_stop_the_loop,
      resolver_does_not_keep_the_loop_running,
      lookup_without_memory_fails_or_is_refused,
      query_without_memory_or_thread_reports_that, lost_query_is_sent_again,
      resolver_without_memory_leaks_nothing,
      queries_leave_the_reference_count_of_the_loop_unchanged,
      loop_sleeps_until_a_query_is_answered,
      idle_resolver_does_not_wake_the_loop,
      truncated_answer_does_not_delay_others, undelivered_results_are_freed,
      resolver_without_descriptors_works_or_is_refused)
