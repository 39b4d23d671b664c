/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Candidates of the blocking interface with a model server on loopback. */

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "unit/fake/loopback.h"

static loopback zk;
static lk_sync_client *one, *two;
static lk_sync_candidate *a, *b;
static char events[512]; /* of `a`; written by its thread */

static const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 10000};
static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 30};

static void on_event(lk_sync_candidate *c, const lk_candidate_event *event,
                     void *arg)
{
  (void)c;
  ck_assert_ptr_eq(arg, events);
  strcat(events, lk_candidate_event_text(event->type));
  strcat(events, " ");
}

static lk_sync_client *new_client(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  lk_sync_client *c;

  ck_assert_int_eq(lk_sync_client_new(&c, &config), 0);
  return c;
}

static void start(void)
{
  const lk_sync_candidate_config config = {
      .size = sizeof config, .on_event = on_event, .arg = events};
  const lk_lock_config lock = {.size = sizeof lock, .data = lk_text("a")};

  events[0] = '\0';
  loopback_start(&zk);
  one = new_client();
  two = new_client();
  ck_assert_int_eq(
      lk_sync_election_new(&a, one, "/e", LK_LAYOUT_LATCH, &lock, &config), 0);
  ck_assert_int_eq(
      lk_sync_election_new(&b, two, "/e", LK_LAYOUT_LATCH, NULL, NULL), 0);
}

static void stop(void)
{
  lk_sync_candidate_free(a);
  lk_sync_candidate_free(b);
  lk_sync_client_free(one);
  lk_sync_client_free(two);
  loopback_stop(&zk);
}

static void expect_leads(const lk_sync_candidate *c, const lk_sync_client *of)
{
  ck_assert(lk_sync_candidate_ok(c));
  ck_assert_uint_gt(lk_sync_candidate_term(c), 0);
  ck_assert_int_gt(lk_sync_candidate_deadline(c), lk_sync_client_clock(of));
  ck_assert_int_eq(lk_sync_candidate_get_state(c), LK_CANDIDATE_LEADING);
}

static void expect_does_not_lead(const lk_sync_candidate *c,
                                 lk_candidate_state state)
{
  ck_assert(!lk_sync_candidate_ok(c));
  ck_assert_uint_eq(lk_sync_candidate_term(c), 0);
  ck_assert_int_eq(lk_sync_candidate_deadline(c), INT64_MIN);
  ck_assert_int_eq(lk_sync_candidate_get_state(c), state);
}

START_TEST(candidates_lead_one_after_the_other)
{
  start();
  expect_does_not_lead(a, LK_CANDIDATE_STOPPED);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  expect_leads(a, one);
  uint64_t term = lk_sync_candidate_term(a);

  ck_assert_int_eq(lk_sync_candidate_wait_elected(b, &brief), LK_ERR_DEADLINE);
  expect_does_not_lead(b, LK_CANDIDATE_WAITING);
  ck_assert_int_eq(lk_sync_candidate_wait_unsure(a, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_candidate_resign(a), 0);
  expect_does_not_lead(a, LK_CANDIDATE_STOPPED);
  ck_assert_int_eq(lk_sync_candidate_wait_unsure(a, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(b, &soon), 0);
  expect_leads(b, two);
  ck_assert_uint_gt(lk_sync_candidate_term(b), term);
  ck_assert_str_eq(events, "elected deposed ");
  stop();
}
END_TEST

static int set_in_term(uint64_t term)
{
  const lk_op op = lk_op_set("/data", lk_text("led"), -1);

  return lk_sync_candidate_guarded_multi(a, NULL, term, &op, 1, &soon);
}

static int32_t version_of_data(void)
{
  lk_stat stat;

  ck_assert_int_eq(lk_sync_exists(two, &stat, "/data", &soon), 0);
  return stat.version;
}

START_TEST(transaction_is_executed_only_in_its_term)
{
  start();
  ck_assert_int_eq(
      lk_sync_create(two, NULL, "/data", lk_text(""), NULL, 0, &soon), 0);
  ck_assert_int_eq(set_in_term(lk_sync_candidate_term(a)), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  uint64_t term = lk_sync_candidate_term(a);

  ck_assert_int_eq(set_in_term(term), 0);
  ck_assert_int_eq(lk_sync_candidate_resign(a), 0);
  ck_assert_int_eq(set_in_term(term), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  ck_assert_int_eq(set_in_term(term), LK_ERR_LOST);
  ck_assert_int_eq(version_of_data(), 1);
  ck_assert_int_eq(set_in_term(lk_sync_candidate_term(a)), 0);
  ck_assert_int_eq(version_of_data(), 2);
  stop();
}
END_TEST

START_TEST(transaction_without_the_node_of_the_leader_is_refused)
{
  start();
  ck_assert_int_eq(
      lk_sync_create(two, NULL, "/data", lk_text(""), NULL, 0, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  uint64_t term = lk_sync_candidate_term(a);

  ck_assert_int_eq(lk_sync_delete_recursive(two, NULL, "/e", &soon), 0);
  ck_assert_int_eq(set_in_term(term), LK_ERR_LOST);
  ck_assert_int_eq(version_of_data(), 0);
  stop();
}
END_TEST

/* The transaction of another thread has no deadline. */
static int set_without_limit(void *arg)
{
  const lk_op op = lk_op_set("/data", lk_text("led"), -1);

  return lk_sync_candidate_guarded_multi(a, NULL, *(const uint64_t *)arg, &op,
                                         1, NULL);
}

START_TEST(free_does_not_wait_for_a_transaction)
{
  waiter w;

  start();
  ck_assert_int_eq(
      lk_sync_create(two, NULL, "/data", lk_text(""), NULL, 0, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  uint64_t term = lk_sync_candidate_term(a);

  loopback_freeze(&zk);
  waiter_start(&w, set_without_limit, &term);
  waiters_inside(one, 2); /* its call, and the request in it */
  lk_sync_candidate_free(a);
  a = NULL;
  loopback_thaw(&zk);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert_int_eq(version_of_data(), 1);
  stop();
}
END_TEST

/* Calls of other threads. */
static int wait_for_election(void *arg)
{
  (void)arg;
  return lk_sync_candidate_wait_elected(a, NULL);
}

static int wait_for_doubt(void *arg)
{
  (void)arg;
  return lk_sync_candidate_wait_unsure(a, NULL);
}

/* `b` leads, and a thread waits for the election of `a`. */
static void start_waiter(waiter *w)
{
  start();
  ck_assert_int_eq(lk_sync_candidate_wait_elected(b, &soon), 0);
  waiter_start(w, wait_for_election, NULL);
  waiters_inside(one, 1);
}

START_TEST(resignation_ends_the_waits_of_other_threads)
{
  waiter w;

  start_waiter(&w);
  ck_assert_int_eq(lk_sync_candidate_resign(a), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CANCELLED);
  stop();
}
END_TEST

START_TEST(free_ends_the_waits_of_other_threads)
{
  waiter w;

  start_waiter(&w);
  lk_sync_candidate_free(a);
  a = NULL;
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  stop();
}
END_TEST

START_TEST(free_ends_the_wait_for_a_doubt)
{
  waiter w;

  start();
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  waiter_start(&w, wait_for_doubt, NULL);
  waiters_inside(one, 1);
  lk_sync_candidate_free(a);
  a = NULL;
  ck_assert_int_eq(waiter_end(&w), 0);
  stop();
}
END_TEST

START_TEST(close_of_the_client_ends_waits_and_terms)
{
  waiter w;

  start_waiter(&w);
  ck_assert_int_eq(lk_sync_client_close(one), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_candidate_start(a), LK_ERR_CLOSED);
  expect_leads(b, two);
  ck_assert_int_eq(lk_sync_client_close(two), 0);
  expect_does_not_lead(b, LK_CANDIDATE_STOPPED);
  stop();
}
END_TEST

START_TEST(loss_wakes_the_thread_that_waits_for_a_doubt)
{
  waiter w;

  start();
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  uint64_t term = lk_sync_candidate_term(a);

  waiter_start(&w, wait_for_doubt, NULL);
  waiters_inside(one, 1);
  loopback_expire(&zk);
  ck_assert_int_eq(waiter_end(&w), 0);
  /* It takes part again by itself. */
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  ck_assert_uint_gt(lk_sync_candidate_term(a), term);
  stop();
}
END_TEST

START_TEST(child_process_does_not_lead)
{
  int status;

  start();
  ck_assert_int_eq(lk_sync_candidate_wait_elected(a, &soon), 0);
  pid_t child = fork();

  if (child == 0)
    _exit(lk_sync_candidate_ok(a) || lk_sync_candidate_term(a) != 0 ||
          lk_sync_candidate_start(a) != LK_ERR_FORKED ||
          lk_sync_candidate_wait_elected(a, NULL) != LK_ERR_FORKED);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  expect_leads(a, one);
  stop();
}
END_TEST

/* ---- candidates for locks ------------------------------------------------ */

static lk_sync_lock *ours, *theirs; /* of `one` and of `two` */
static atomic_int waiting_events;   /* of `ours` */

static void on_lock_event(lk_sync_lock *l, const lk_lock_event *event,
                          void *arg)
{
  ck_assert_ptr_eq(l, ours);
  ck_assert_ptr_eq(arg, &ours);
  if (event->type == LK_LOCK_EVENT_WAITING)
    atomic_fetch_add(&waiting_events, 1);
}

/* The candidate and the thread of another client take turns. */
static void check_candidate_for_lock(void)
{
  lk_sync_candidate *c;

  waiting_events = 0;
  ck_assert_int_eq(lk_sync_candidate_new(&c, ours, NULL), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(c, &soon), 0);
  expect_leads(c, one);
  ck_assert_int_eq(lk_sync_lock_try(theirs, NULL), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_candidate_resign(c), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(theirs, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(c, &brief), LK_ERR_DEADLINE);
  expect_does_not_lead(c, LK_CANDIDATE_WAITING);
  ck_assert_int_eq(lk_sync_lock_release(theirs), 0);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(c, &soon), 0);
  ck_assert_int_ge(waiting_events, 1);
  lk_sync_candidate_free(c);
  ck_assert_int_eq(lk_sync_lock_acquire(theirs, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_release(theirs), 0);
}

static void free_both_locks(void)
{
  lk_sync_lock_free(ours);
  lk_sync_lock_free(theirs);
}

START_TEST(any_lock_can_have_a_candidate)
{
  const lk_semaphore_config one_permit = {.size = sizeof one_permit,
                                          .permits = 1};

  start();
  ck_assert_int_eq(
      lk_sync_lock_new(&ours, one, "/m", NULL, on_lock_event, &ours), 0);
  ck_assert_int_eq(lk_sync_lock_new(&theirs, two, "/m", NULL, NULL, NULL), 0);
  check_candidate_for_lock();
  free_both_locks();
  ck_assert_int_eq(
      lk_sync_single_new(&ours, one, "/n", NULL, NULL, on_lock_event, &ours),
      0);
  ck_assert_int_eq(
      lk_sync_single_new(&theirs, two, "/n", NULL, NULL, NULL, NULL), 0);
  check_candidate_for_lock();
  free_both_locks();
  ck_assert_int_eq(lk_sync_semaphore_new(&ours, one, "/s", NULL, &one_permit,
                                         on_lock_event, &ours),
                   0);
  ck_assert_int_eq(
      lk_sync_semaphore_new(&theirs, two, "/s", NULL, &one_permit, NULL, NULL),
      0);
  check_candidate_for_lock();
  free_both_locks();
  stop();
}
END_TEST

START_TEST(a_side_of_a_read_write_lock_can_have_a_candidate)
{
  lk_sync_rwlock *rw, *other;

  start();
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rw, one, "/rw", NULL, on_lock_event, &ours), 0);
  ck_assert_int_eq(lk_sync_rwlock_new(&other, two, "/rw", NULL, NULL, NULL), 0);
  ours = lk_sync_rwlock_read_side(rw);
  theirs = lk_sync_rwlock_write_side(other);
  check_candidate_for_lock();
  ours = lk_sync_rwlock_write_side(rw);
  theirs = lk_sync_rwlock_read_side(other);
  check_candidate_for_lock();
  lk_sync_rwlock_free(rw);
  lk_sync_rwlock_free(other);
  stop();
}
END_TEST

SUITE("candidates", candidates_lead_one_after_the_other,
      transaction_is_executed_only_in_its_term,
      transaction_without_the_node_of_the_leader_is_refused,
      free_does_not_wait_for_a_transaction,
      resignation_ends_the_waits_of_other_threads,
      free_ends_the_waits_of_other_threads, free_ends_the_wait_for_a_doubt,
      close_of_the_client_ends_waits_and_terms,
      loss_wakes_the_thread_that_waits_for_a_doubt, child_process_does_not_lead,
      any_lock_can_have_a_candidate,
      a_side_of_a_read_write_lock_can_have_a_candidate)
