/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

#include "ev/loop.h"
#include "net/resolver_thread.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "unit/fake/names.h"

static struct ev_loop *loop;
static lk_ev_loop resolver_loop;
static lk_fork_check *fork_check;
static lk_clock test_clock;
static lk_resolver *resolver;
static failing_mem mem;
static ev_prepare deliver_before_wait;
static char results[1024]; /* "127.0.0.1:0 [::1]:0 | why | …" */
static unsigned completed; /* how many lookups have completed since start() */

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
  fake_names_start();
  failing_mem_init(&mem);
  fork_check = lk__fork_check_new();
  ck_assert_int_eq(lk__clock_open(&test_clock), 0);
  ck_assert_int_eq(lk__resolver_new(&resolver, &resolver_loop.base, &test_clock,
                                    fork_check, &mem.mem),
                   0);
  ev_prepare_init(&deliver_before_wait, on_prepare);
  ev_prepare_start(loop, &deliver_before_wait);
}

static void stop(void)
{
  lk__resolver_free(resolver);
  ck_assert_uint_eq(mem.live, 0);
  lk__fork_check_free(fork_check);
  lk__clock_close(&test_clock);
  fake_names_stop();
  ev_prepare_stop(loop, &deliver_before_wait);
  ev_loop_destroy(loop);
}

static void on_guard(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)l;
  (void)w;
  (void)revents;
  ck_abort_msg("a lookup does not complete");
}

static void run_until_completed(unsigned count)
{
  ev_timer guard;

  ev_timer_init(&guard, on_guard, 10, 0);
  ev_timer_start(loop, &guard);
  while (completed < count)
    ev_run(loop, EVRUN_ONCE);
  ev_timer_stop(loop, &guard);
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
  stop();
}
END_TEST

START_TEST(many_names_are_resolved_at_once)
{
  enum { NAMES = 40 };
  static const char one[] = "127.0.0.1:0 |";
  lk_lookup l[NAMES];

  for (int round = 0; round < 3; round++) {
    start();
    for (int i = 0; i < NAMES; i++) {
      char name[24];

      snprintf(name, sizeof name, "any%d.test", i);
      start_lookup(&l[i], name);
    }
    run_until_completed(NAMES);
    ck_assert_uint_eq(fake_names_lookups(), NAMES);
    for (size_t i = 0; i < NAMES; i++)
      ck_assert_int_eq(
          strncmp(results + i * (sizeof one - 1), one, sizeof one - 1), 0);
    ck_assert_uint_eq(strlen(results), NAMES * (sizeof one - 1));
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

/* Let the next lookup of a name begin queries. */
static void wait_for_interval(void)
{
  poll(NULL, 0, LK_LOOKUP_INTERVAL_MS + 1);
}

/* Resolve `host` and return the time that it took, in ms. */
static int64_t time_lookup(const char *host, const char *answer)
{
  int64_t began_ms = lk__clock_now(&test_clock);

  expect_result(host, answer);
  return lk__clock_now(&test_clock) - began_ms;
}

/* How long a lookup takes if the query for both families hangs. */
enum {
  FIRST_MS = LK_LOOKUP_FAMILIES_MS,
  SECOND_MS = LK_LOOKUP_SECOND_FAMILY_MS
};

static void expect_in_time(const char *host, const char *answer,
                           int64_t least_ms, int64_t limit_ms)
{
  int64_t took_ms = time_lookup(host, answer);

  ck_assert_int_ge(took_ms, least_ms);
  ck_assert_int_lt(took_ms, limit_ms);
}

/* A name server may reply to the queries of one family only. */
START_TEST(a_family_without_answer_delays_a_lookup_by_350_ms)
{
  start();
  expect_in_time("half.test", "127.0.0.1:0 |", FIRST_MS + SECOND_MS,
                 LK_LOOKUP_INTERVAL_MS);
  expect_in_time("six.test", "[::1]:0 |", FIRST_MS + SECOND_MS,
                 LK_LOOKUP_INTERVAL_MS);
  stop();
}
END_TEST

START_TEST(second_family_within_50_ms_is_used)
{
  start();
  expect_in_time("soon.test", "127.0.0.1:0 [::1]:0 |", FIRST_MS + SECOND_MS,
                 LK_LOOKUP_INTERVAL_MS);
  stop();
}
END_TEST

START_TEST(families_are_asked_for_if_the_query_for_both_fails)
{
  start();
  expect_in_time("broken.test", "127.0.0.1:0 |", 0, SECOND_MS);
  stop();
}
END_TEST

START_TEST(late_result_is_remembered_for_the_next_lookup)
{
  start();
  expect_in_time("late.test", "127.0.0.1:0 |", FIRST_MS + SECOND_MS,
                 FAKE_NAMES_LATE_MS);
  poll(NULL, 0, FAKE_NAMES_LATE_MS);
  ev_run(loop, EVRUN_NOWAIT);
  expect_in_time("late.test", "127.0.0.1:0 [::1]:0 |", 0, SECOND_MS);
  ck_assert_uint_eq(fake_names_lookups(), 1);
  stop();
}
END_TEST

START_TEST(name_is_looked_up_once_a_second)
{
  start();
  for (int i = 0; i < 3; i++)
    expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  expect_failure("none.test");
  expect_failure("none.test");
  ck_assert_uint_eq(fake_names_lookups(), 2);
  wait_for_interval();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  expect_failure("none.test");
  ck_assert_uint_eq(fake_names_lookups(), 4);
  stop();
}
END_TEST

START_TEST(remembered_addresses_are_used_at_once_if_a_lookup_fails)
{
  start();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  wait_for_interval();
  fake_names_fail = true;
  int64_t took_ms = time_lookup("two.test", "127.0.0.1:0 127.0.0.2:0 |");

  ck_assert_int_lt(took_ms, LK_LOOKUP_SECOND_FAMILY_MS);
  ck_assert_uint_eq(fake_names_lookups(), 2);
  expect_failure("twice.test");
  stop();
}
END_TEST

static void run_until_waiting(unsigned count)
{
  while (fake_names_waiting() < count)
    ev_run(loop, EVRUN_NOWAIT);
  poll(NULL, 0, 20); /* so that a thread too many would be seen */
  ev_run(loop, EVRUN_NOWAIT);
  ck_assert_uint_eq(fake_names_waiting(), count);
}

/* The lookup waits on, and gets the result of the queries later. */
START_TEST(remembered_addresses_are_used_after_250_ms_without_answer)
{
  lk_lookup l;

  start();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  wait_for_interval();
  fake_names_hang = true;
  results[0] = '\0';
  int64_t began_ms = lk__clock_now(&test_clock);

  start_lookup(&l, "two.test");
  run_until_completed(2);
  ck_assert_str_eq(results, "127.0.0.1:0 127.0.0.2:0 |");
  ck_assert_int_ge(lk__clock_now(&test_clock) - began_ms,
                   LK_LOOKUP_REMEMBERED_MS);
  ck_assert(lk__lookup_waits(&l));
  fake_names_stop();
  run_until_completed(3);
  ck_assert(!lk__lookup_waits(&l));
  stop();
}
END_TEST

/* Queries that hang serve later lookups. Another one begins beside a slow one.
 */
START_TEST(hanging_queries_are_joined_and_repeated_once)
{
  lk_lookup l;

  start();
  for (int i = 0; i < 5; i++) {
    start_lookup(&l, "silent.test");
    wait_for_interval();
    ev_run(loop, EVRUN_NOWAIT); /* the queries for one family begin */
    lk__lookup_cancel(&l);
  }
  run_until_waiting(2 * LK_LOOKUP_KINDS);
  ck_assert_uint_eq(fake_names_lookups(), 2);
  stop();
}
END_TEST

static void start_silent_lookups(lk_lookup *l, unsigned count,
                                 const char *prefix)
{
  for (unsigned i = 0; i < count; i++) {
    char name[24];

    snprintf(name, sizeof name, "%s%u.test", prefix, i);
    start_lookup(&l[i], name);
  }
}

/* The queries of two kinds hang. */
START_TEST(queries_of_a_family_that_is_answered_have_threads)
{
  enum { NAMES = LK_LOOKUP_THREADS };
  lk_lookup l[NAMES];

  start();
  start_silent_lookups(l, NAMES, "half");
  run_until_waiting(2 * LK_LOOKUP_THREADS_OF_A_KIND);
  expect_result("half.test", "127.0.0.1:0 |");
  stop();
}
END_TEST

START_TEST(hanging_lookups_have_at_most_16_threads)
{
  enum { NAMES = 2 * LK_LOOKUP_THREADS };
  lk_lookup l[NAMES];

  start();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  wait_for_interval();
  start_silent_lookups(l, NAMES, "silent");
  run_until_waiting(LK_LOOKUP_THREADS);
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |"); /* is remembered */
  stop();
}
END_TEST

START_TEST(names_that_were_used_least_recently_are_forgotten)
{
  start();
  expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
  for (int i = 0; i < 200; i++) {
    char name[24];

    snprintf(name, sizeof name, "n%d.test", i);
    expect_failure(name);
    if (i == 40)
      expect_result("two.test", "127.0.0.1:0 127.0.0.2:0 |");
    if (i == 100)
      ck_assert_uint_eq(fake_names_lookups(), 102);
  }
  ck_assert_uint_lt(mem.live, 80);
  fake_names_fail = true;
  expect_failure("two.test");
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

/* Returns whether an allocation of the lookup has failed. */
static bool lookup_without_memory(size_t fail_at, size_t *refused,
                                  size_t *failed)
{
  lk_lookup l;

  start();
  mem.for_good = true;
  mem.count = 0;
  mem.fail_at = fail_at;
  init_lookup(&l);
  if (!lk__resolver_lookup(resolver, &l, "dead.test")) {
    ++*refused;
  } else {
    run_until_completed(1);
    if (strcmp(results, "resolve dead.test: out of memory|") == 0)
      ++*failed;
    else
      ck_assert_ptr_nonnull(strstr(results, "127.9.9.5:0"));
  }
  bool has_failed = failing_mem_failed(&mem);

  ck_assert_uint_le(mem.count, 5); /* fewer allocations than addresses (6) */
  mem.fail_at = 0;
  stop();
  return has_failed;
}

START_TEST(lookup_without_memory_fails_or_is_refused)
{
  size_t refused = 0, failed = 0, n = 0;

  while (lookup_without_memory(++n, &refused, &failed))
    ;
  ck_assert_uint_eq(refused, 1); /* the name */
  ck_assert_uint_eq(failed, 2);  /* its addresses, and the copy for lookups */
}
END_TEST

START_TEST(query_without_memory_or_thread_reports_that)
{
  start();
  fake_names_no_memory = true;
  expect_result("twice.test", "resolve twice.test: cannot start a thread|");
  fake_names_no_memory = false;
  fake_names_no_thread = true;
  expect_result("two.test", "resolve two.test: cannot start a thread|");
  fake_names_no_thread = false;
  wait_for_interval();
  expect_result("twice.test", "127.0.0.1:0 |");
  stop();
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
    if (lk__resolver_new(&resolver, &resolver_loop.base, &test_clock,
                         fork_check, &mem.mem) == 0)
      lk__resolver_free(resolver);
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
  start();
  expect_result("twice.test", "127.0.0.1:0 |");
  ck_assert_uint_lt(count_turns(), 4);
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

START_TEST(resolver_without_descriptors_is_refused)
{
  struct rlimit limit, none;
  lk_resolver *other;

  start();
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = 0;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  size_t live = mem.live;
  int err = lk__resolver_new(&other, &resolver_loop.base, &test_clock,
                             fork_check, &mem.mem);

  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ck_assert_int_eq(err, LK_ERR_SYSTEM);
  ck_assert_uint_eq(mem.live, live);
  stop();
}
END_TEST

SUITE("resolver", all_addresses_of_a_name_are_found, equal_addresses_count_once,
      hosts_file_is_read, names_of_localhost_are_loopback_addresses,
      localhost_costs_no_lookup_without_a_hosts_file, unknown_name_is_reported,
      lookups_of_one_name_share_a_query, many_names_are_resolved_at_once,
      cancelled_lookup_is_not_completed,
      a_family_without_answer_delays_a_lookup_by_350_ms,
      second_family_within_50_ms_is_used,
      families_are_asked_for_if_the_query_for_both_fails,
      late_result_is_remembered_for_the_next_lookup,
      name_is_looked_up_once_a_second,
      remembered_addresses_are_used_at_once_if_a_lookup_fails,
      remembered_addresses_are_used_after_250_ms_without_answer,
      hanging_queries_are_joined_and_repeated_once,
      queries_of_a_family_that_is_answered_have_threads,
      hanging_lookups_have_at_most_16_threads,
      names_that_were_used_least_recently_are_forgotten,
      a_silent_name_server_does_not_stop_the_loop,
      resolver_does_not_keep_the_loop_running,
      lookup_without_memory_fails_or_is_refused,
      query_without_memory_or_thread_reports_that,
      resolver_without_memory_leaks_nothing,
      queries_leave_the_reference_count_of_the_loop_unchanged,
      loop_sleeps_until_a_query_is_answered,
      idle_resolver_does_not_wake_the_loop, undelivered_results_are_freed,
      resolver_without_descriptors_is_refused)
