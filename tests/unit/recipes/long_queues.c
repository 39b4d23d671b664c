/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/rwlock.h>
#include <stdio.h>

/* Long queues and their limit, and contenders that list before they queue. */

enum { MAX_WAITERS = 14 };

static lock_pair lp;
static locker waiters[MAX_WAITERS];

/* a holds, and `count` handles of its session wait behind it. */
static void begin_with_waiters(const lk_lock_config *config, int count)
{
  lock_pair_begin(&lp, NULL, config);
  lock_pair_hold(&lp);
  for (int i = 0; i < count; i++) {
    locker_init(&waiters[i], &lp.one, config);
    locker_request(&waiters[i]);
  }
  lp.one.link->log[0] = '\0';
}

/* Frees the last waiter first, so that none is granted. */
static void end_with_waiters(int count)
{
  for (int i = count; i-- > 0;)
    locker_free(&waiters[i]);
  lock_pair_end(&lp);
}

/* ---- max_queue ---------------------------------------------------------- */

START_TEST(contender_behind_too_many_is_refused_at_once)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 3};

  begin_with_waiters(&config, 2);
  locker_request(&lp.b); /* three predecessors: the holder and two waiters */
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  locker_init(&waiters[2], &lp.two, &config);
  lp.two.link->log[0] = '\0';
  locker_request(&waiters[2]);
  ck_assert_int_eq(waiters[2].acquired, LK_ERR_QUEUE_FULL);
  ck_assert(model_check_log(lp.two.link, "create2 getChildren2 | delete"));
  ck_assert(locker_check_events(&waiters[2], ""));
  /* the nodes of the holder, two waiters and b */
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 4);
  ck_assert_uint_eq(lk_lease_pending_cleanups(lp.two.link->client), 0);
  /* when the queue is shorter, the same handle is not refused */
  locker_release(&lp.a);
  model_turn(&lp.server);
  locker_request(&waiters[2]);
  ck_assert_int_eq(waiters[2].acquired, NOT_YET);
  end_with_waiters(3);
}
END_TEST

START_TEST(contender_that_lost_its_node_queues_again_and_counts)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 2};

  begin_with_waiters(&config, 2);
  model_delete(&lp.server, lk_lock_node(waiters[0].lock));
  model_turn(&lp.server);
  /* it has queued again, behind two others */
  ck_assert_int_eq(waiters[0].acquired, NOT_YET);
  locker_request(&lp.b);
  ck_assert_int_eq(lp.b.acquired, LK_ERR_QUEUE_FULL);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 3);
  end_with_waiters(2);
}
END_TEST

START_TEST(only_predecessors_that_exclude_are_counted)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 1};
  lk_rwlock *rw;
  char path[64];

  lock_pair_begin(&lp, NULL, &config);
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, LOCKS "/x-__READ__000000000%d", i);
    model_create(&lp.server, path);
  }
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  ck_assert_int_eq(lk_rwlock_new(&rw, lp.two.link->client, LOCKS, &config), 0);
  ck_assert_int_eq(
      lk_lock_acquire(lk_rwlock_read_side(rw), LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_QUEUE_FULL);
  ck_assert(lk_lock_ok(lk_rwlock_read_side(rw)));
  lk_rwlock_free(rw);
  model_turn(&lp.server);
  for (int i = 0; i < 5; i++)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(queue_of_ten_thousand_is_logged_once)
{
  enum { VERY_LONG = 10000 };
  char path[64];

  lock_pair_begin(&lp, NULL, NULL);
  for (int i = 0; i < VERY_LONG; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_create(&lp.server, path);
  }
  ck_assert_int_eq(locker_try(&lp.a), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_BUSY);
  /* the second acquire logs nothing */
  ck_assert_int_eq(locker_try(&lp.a), 0);
  model_turn(&lp.server);
  ck_assert_uint_eq(lp.one.warnings, 1);
  for (int i = 0; i < VERY_LONG; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_delete(&lp.server, path);
  }
  lock_pair_end(&lp);
}
END_TEST

/* ---- peek: list before the create --------------------------------------- */

START_TEST(list_first_writes_nothing_if_the_queue_is_not_empty)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  lock_pair_hold(&lp);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(locker_try(&lp.b), 0);
    model_turn(&lp.server);
    ck_assert_int_eq(lp.b.acquired, LK_ERR_BUSY);
    ck_assert(model_check_log(lp.two.link, "getChildren2"));
  }
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(locker_try(&lp.b), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(
      model_check_log(lp.two.link, "getChildren2 | create2 getChildren2"));
  /* an acquire that may wait does not list first */
  lp.one.link->log[0] = '\0';
  locker_request(&lp.a);
  ck_assert(
      model_check_log(lp.one.link, "create2 getChildren2 | getData getData"));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(list_first_detects_a_full_queue_without_a_node)
{
  lk_lock_config config = {.size = sizeof config, .peek = true, .max_queue = 1};

  lock_pair_begin(&lp, NULL, &config);
  lock_pair_hold(&lp);
  locker_request(&lp.b);
  ck_assert(model_check_log(lp.two.link,
                            "getChildren2 | create2 getChildren2 | "
                            "getData getData"));
  locker_init(&waiters[0], &lp.one, &config);
  ck_assert_int_eq(locker_acquire(&waiters[0], 500), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(waiters[0].acquired, LK_ERR_QUEUE_FULL);
  ck_assert(model_check_log(lp.one.link, "getChildren2"));
  end_with_waiters(1);
}
END_TEST

enum { LISTS = 4, LISTS_AND_CREATE }; /* to be throttled */

static unsigned throttled; /* number of requests */

/* The first four lists are throttled, and then the first create. */
static void throttle_lists_and_create(model_server *s, model_link *l,
                                      int32_t op, const char *path)
{
  (void)s;
  (void)path;
  int32_t next_op =
      throttled < LISTS ? LK_OPCODE_GET_CHILDREN2 : LK_OPCODE_CREATE2;

  if (throttled < LISTS_AND_CREATE && op == next_op) {
    l->throttle_at = l->requests;
    throttled++;
  }
}

START_TEST(successful_first_list_makes_the_next_pause_short)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  throttled = 0;
  lp.server.before = throttle_lists_and_create;
  ck_assert_int_eq(locker_try(&lp.a), 0);
  for (int ms = 0; ms < 2000 && throttled < LISTS_AND_CREATE; ms++)
    model_run(&lp.server, 1);
  ck_assert_uint_eq(throttled, LISTS_AND_CREATE);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  /* the pause after the create is as short as the first one after a list */
  model_run(&lp.server, 100);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(list_first_takes_a_missing_directory_for_an_empty_queue)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  model_delete(&lp.server, LOCKS);
  ck_assert_int_eq(locker_try(&lp.a), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* Another contender queues between the first list and the create. */
static void create_rival_before_create(model_server *s, model_link *l,
                                       int32_t op, const char *path)
{
  (void)l;
  (void)path;
  if (op != LK_OPCODE_CREATE2)
    return;
  s->before = NULL;
  model_create(s, LOCKS "/x-lock-0000000000");
}

START_TEST(contender_can_precede_us_after_the_first_list)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  model_create(&lp.server, LOCKS "/note"); /* so that the next number is 1 */
  lp.server.before = create_rival_before_create;
  ck_assert_int_eq(locker_try(&lp.a), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_BUSY);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  model_delete(&lp.server, LOCKS "/x-lock-0000000000");
  model_delete(&lp.server, LOCKS "/note");
  lock_pair_end(&lp);
}
END_TEST

START_TEST(first_list_is_repeated_after_a_break_or_throttling)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  enum { BREAK_BEFORE_LIST, BREAK_AFTER_LIST, THROTTLED };

  for (int fault = BREAK_BEFORE_LIST; fault <= THROTTLED; fault++) {
    lock_pair_begin(&lp, NULL, &config);
    lock_pair_hold(&lp);
    lp.two.link->requests = 0;
    if (fault == THROTTLED)
      lp.two.link->throttle_at = 1;
    else
      lp.two.link->cut_at = 1;
    lp.two.link->cut_after = fault == BREAK_AFTER_LIST;
    ck_assert_int_eq(locker_try_with_next_connection(&lp.b), 0);
    model_run(&lp.server, T / 2);
    ck_assert_int_eq(lp.b.acquired, LK_ERR_BUSY);
    ck_assert_uint_eq(model_count(lp.two.link, "create2"), 0);
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- grants ------------------------------------------------------------- */

START_TEST(each_grant_in_a_long_queue_costs_a_list)
{
  begin_with_waiters(NULL, MAX_WAITERS);
  locker_release(&lp.a);
  model_turn(&lp.server);
  for (int i = 0; i < MAX_WAITERS; i++) {
    ck_assert_int_eq(waiters[i].acquired, 0);
    locker_release(&waiters[i]);
    model_turn(&lp.server);
  }
  /* the last nine handoffs can do without, since a contender reads up to eight
   * predecessors one by one */
  ck_assert_uint_ge(model_count(lp.one.link, "getChildren2"), MAX_WAITERS - 9);
  end_with_waiters(MAX_WAITERS);
}
END_TEST

SUITE("long_queues", contender_behind_too_many_is_refused_at_once,
      contender_that_lost_its_node_queues_again_and_counts,
      only_predecessors_that_exclude_are_counted,
      queue_of_ten_thousand_is_logged_once,
      list_first_writes_nothing_if_the_queue_is_not_empty,
      list_first_detects_a_full_queue_without_a_node,
      successful_first_list_makes_the_next_pause_short,
      list_first_takes_a_missing_directory_for_an_empty_queue,
      contender_can_precede_us_after_the_first_list,
      first_list_is_repeated_after_a_break_or_throttling,
      each_grant_in_a_long_queue_costs_a_list)
