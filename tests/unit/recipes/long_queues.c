/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/rwlock.h>
#include <stdio.h>

/* Long queues and their limit, contenders that list before they queue, and
 * announcements by holders. */

enum { MOST_WAITERS = 14 };

static lock_pair lp;
static locker waiters[MOST_WAITERS];

/* a holds, and `count` others wait behind it; each is notified of its
 * position. */
static void begin_with_waiters(const lk_lock_config *config, int count)
{
  lock_pair_begin(&lp, NULL, config);
  lock_pair_hold(&lp);
  for (int i = 0; i < count; i++) {
    locker_init(&waiters[i], &lp.one, config);
    ck_assert_int_eq(locker_acquire(&waiters[i], LK_NO_LIMIT), 0);
    model_turn(&lp.server);
  }
  lp.one.link->log[0] = '\0';
}

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
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server); /* three predecessors: the holder and two waiters */
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  locker_init(&waiters[2], &lp.two, &config);
  lp.two.link->log[0] = '\0';
  ck_assert_int_eq(locker_acquire(&waiters[2], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(waiters[2].acquired, LK_ERR_QUEUE_FULL);
  ck_assert(model_check_log(lp.two.link, "create2 getChildren2 | delete"));
  ck_assert(locker_check_events(&waiters[2], ""));
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 4);
  ck_assert_uint_eq(lk_lease_pending_cleanups(lp.two.link->client), 0);
  /* when the queue is shorter, it is no longer refused */
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(locker_acquire(&waiters[2], LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(waiters[2].acquired, NOT_YET);
  end_with_waiters(3);
}
END_TEST

START_TEST(contender_that_lost_its_node_in_a_full_queue_is_refused)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 2};

  begin_with_waiters(&config, 2);
  model_delete(&lp.server, lk_lock_node(waiters[0].lock));
  model_turn(&lp.server);
  ck_assert_int_eq(waiters[0].acquired, NOT_YET);
  config.max_queue = 1;
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
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
  ck_assert_int_eq(lk_lock_acquire(lk_rwlock_read_side(rw), LK_NO_LIMIT, NULL, NULL), 0);
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
  char path[64];

  lock_pair_begin(&lp, NULL, NULL);
  for (int i = 0; i < 10000; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_create(&lp.server, path);
  }
  ck_assert_int_eq(locker_acquire(&lp.a, 0), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_BUSY);
  ck_assert_int_eq(locker_acquire(&lp.a, 0), 0);
  model_turn(&lp.server);
  ck_assert_uint_eq(lp.one.warnings, 1);
  for (int i = 0; i < 10000; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_delete(&lp.server, path);
  }
  lock_pair_end(&lp);
}
END_TEST

/* ---- peek --------------------------------------------------------------- */

START_TEST(list_first_writes_nothing_if_the_queue_is_not_empty)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  lock_pair_hold(&lp);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(locker_acquire(&lp.b, 0), 0);
    model_turn(&lp.server);
    ck_assert_int_eq(lp.b.acquired, LK_ERR_BUSY);
    ck_assert(model_check_log(lp.two.link, "getChildren2"));
  }
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(locker_acquire(&lp.b, 0), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(
      model_check_log(lp.two.link, "getChildren2 | create2 getChildren2"));
  /* an acquire that may wait does not list first */
  lp.one.link->log[0] = '\0';
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
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
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
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

static unsigned throttled;

/* The first four lists are throttled, and then the first create. */
static void throttle_lists_and_create(model_server *s, model_link *l,
                                      int32_t op, const char *path)
{
  (void)s;
  (void)path;
  if (op != (throttled < 4 ? 12 : 15) || throttled == 5)
    return;
  l->throttle_at = l->requests;
  throttled++;
}

START_TEST(successful_first_list_makes_the_next_pause_short)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  throttled = 0;
  lp.server.before = throttle_lists_and_create;
  ck_assert_int_eq(locker_acquire(&lp.a, 0), 0);
  for (int ms = 0; ms < 2000 && throttled < 5; ms++)
    model_run(&lp.server, 1);
  ck_assert_uint_eq(throttled, 5);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  model_run(&lp.server, 100); /* the pauses begin again with the shortest */
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(list_first_takes_a_missing_directory_for_an_empty_queue)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  model_delete(&lp.server, LOCKS);
  ck_assert_int_eq(locker_acquire(&lp.a, 0), 0);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* Another contender queues between the first list and the create. */
static void create_rival_first(model_server *s, model_link *l, int32_t op,
                               const char *path)
{
  (void)l;
  (void)path;
  if (op != 15)
    return;
  s->before = NULL;
  model_create(s, LOCKS "/x-lock-0000000000");
}

START_TEST(contender_can_precede_us_after_the_first_list)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  lock_pair_begin(&lp, NULL, &config);
  model_create(&lp.server, LOCKS "/note"); /* so that the next number is 1 */
  lp.server.before = create_rival_first;
  ck_assert_int_eq(locker_acquire(&lp.a, 0), 0);
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

  for (int how = 0; how < 3; how++) {
    lock_pair_begin(&lp, NULL, &config);
    lock_pair_hold(&lp);
    lp.two.link->requests = 0;
    lp.two.link->cut_at = how < 2 ? 1 : 0;
    lp.two.link->cut_after = how == 1;
    lp.two.link->throttle_at = how == 2 ? 1 : 0;
    ck_assert_int_eq(locker_acquire(&lp.b, 0), 0);
    model_run(&lp.server, T / 2);
    ck_assert_int_eq(lp.b.acquired, LK_ERR_BUSY);
    ck_assert_uint_eq(model_count(lp.two.link, "create2"), 0);
    lock_pair_end(&lp);
  }
}
END_TEST

/* ---- announce ----------------------------------------------------------- */

static const lk_lock_config announcing = {
    .size = sizeof announcing, .announce = true, .data = {"me", 2}};

START_TEST(contender_that_waited_is_notified_that_it_is_first)
{
  const sim_node *n;

  lock_pair_begin(&lp, NULL, &announcing);
  lock_pair_queue(&lp);
  n = model_node(&lp.server, lk_lock_node(lp.a.lock));
  ck_assert_int_eq(n->stat.data_length,
                   2); /* the node holds the announcement */
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  /* the announcement also proves the lease; the read follows the event of the
   * own watch */
  ck_assert(model_check_log(lp.two.link, "setData | getData"));
  n = model_node(&lp.server, lk_lock_node(lp.b.lock));
  ck_assert_int_eq(n->stat.data_length, 2 + 8);
  ck_assert_mem_eq(n->data, "me" LK_ANNOUNCEMENT, 10);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(waiter_behind_an_announced_holder_sends_no_list)
{
  begin_with_waiters(&announcing, MOST_WAITERS);
  locker_release(&lp.a);
  model_turn(&lp.server);
  for (int i = 0; i < MOST_WAITERS; i++) {
    ck_assert_int_eq(waiters[i].acquired, 0);
    locker_release(&waiters[i]);
    model_turn(&lp.server);
  }
  ck_assert_uint_eq(model_count(lp.one.link, "getChildren2"), 0);
  end_with_waiters(MOST_WAITERS);
}
END_TEST

START_TEST(without_announcements_each_grant_in_a_long_queue_costs_a_list)
{
  begin_with_waiters(NULL, MOST_WAITERS);
  locker_release(&lp.a);
  model_turn(&lp.server);
  for (int i = 0; i < MOST_WAITERS; i++) {
    ck_assert_int_eq(waiters[i].acquired, 0);
    locker_release(&waiters[i]);
    model_turn(&lp.server);
  }
  ck_assert_uint_ge(model_count(lp.one.link, "getChildren2"), MOST_WAITERS - 9);
  end_with_waiters(MOST_WAITERS);
}
END_TEST

static void release_when_held(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0)
    locker_release(l);
}

START_TEST(hold_that_ends_before_its_announcement_costs_a_list)
{
  begin_with_waiters(&announcing, MOST_WAITERS);
  for (int i = 0; i < MOST_WAITERS; i++)
    waiters[i].react = release_when_held;
  locker_release(&lp.a);
  model_turn(&lp.server);
  for (int i = 0; i < MOST_WAITERS; i++)
    ck_assert_int_eq(waiters[i].released, 0);
  ck_assert_uint_ge(model_count(lp.one.link, "getChildren2"), 1);
  ck_assert_uint_le(model_count(lp.one.link, "getChildren2"), MOST_WAITERS);
  end_with_waiters(MOST_WAITERS);
}
END_TEST

START_TEST(waiter_is_notified_that_it_is_the_next)
{
  begin_with_waiters(&announcing, MOST_WAITERS);
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&waiters[MOST_WAITERS - 1],
                                "waiting 14 0000000000\n"));
  for (int i = 0; i < MOST_WAITERS - 2; i++) {
    locker_release(&waiters[i]);
    model_turn(&lp.server);
  }
  ck_assert_int_eq(waiters[MOST_WAITERS - 2].acquired, 0);
  ck_assert(locker_check_events(&waiters[MOST_WAITERS - 1],
                                "waiting 1 0000000013\n"));
  end_with_waiters(MOST_WAITERS);
}
END_TEST

START_TEST(announcement_of_a_reader_proves_nothing)
{
  lock_pair_begin(&lp, NULL, &announcing);
  model_create(&lp.server, LOCKS "/a-__READ__0000000000");
  model_create(&lp.server, LOCKS "/b-__READ__0000000001");
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  model_turn(&lp.server);
  model_set(&lp.server, LOCKS "/b-__READ__0000000001", LK_ANNOUNCEMENT);
  model_turn(&lp.server);
  model_delete(&lp.server, LOCKS "/b-__READ__0000000001");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  model_delete(&lp.server, LOCKS "/a-__READ__0000000000");
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(revocation_in_the_node_is_not_overwritten)
{
  const sim_node *n;

  lock_pair_begin(&lp, NULL, &announcing);
  lock_pair_queue(&lp);
  /* the server executes the revocation and the release before b receives a
   * reply */
  lp.two.link->allow = 0;
  model_set(&lp.server, lk_lock_node(lp.b.lock), LK_REVOKE_MESSAGE);
  lp.two.link->allow = SIZE_MAX;
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(locker_check_events(&lp.b, "revoked\n"));
  n = model_node(&lp.server, lk_lock_node(lp.b.lock));
  ck_assert_mem_eq(n->data, LK_REVOKE_MESSAGE, 10);
  model_run(&lp.server, T);
  ck_assert(lk_lock_ok(lp.b.lock));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(holder_without_a_node_when_announcing_has_lost_the_lock)
{
  lock_pair_begin(&lp, NULL, &announcing);
  lock_pair_queue(&lp);
  lp.two.link->requests = 0;
  lp.two.link->answer_at = 1;
  lp.two.link->answer_err = LK_ERR_NO_NODE;
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(locker_check_events(&lp.b, "lost NO_NODE\n"));
  model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  lock_pair_end(&lp);
}
END_TEST

START_TEST(data_that_contain_the_announcement_are_refused)
{
  lk_lock_config config = {.size = sizeof config};
  lk_lock *l;

  lock_pair_begin(&lp, NULL, NULL);
  config.data = lk_text("me " LK_ANNOUNCEMENT);
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, LOCKS, &config),
                   LK_ERR_BAD_ARGUMENT);
  config.data = lk_text(LK_ANNOUNCEMENT " me");
  ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, LOCKS, &config), 0);
  lk_lock_free(l);
  lock_pair_end(&lp);
}
END_TEST

SUITE("long_queues", contender_behind_too_many_is_refused_at_once,
      contender_that_lost_its_node_in_a_full_queue_is_refused,
      only_predecessors_that_exclude_are_counted,
      queue_of_ten_thousand_is_logged_once,
      list_first_writes_nothing_if_the_queue_is_not_empty,
      list_first_detects_a_full_queue_without_a_node,
      successful_first_list_makes_the_next_pause_short,
      list_first_takes_a_missing_directory_for_an_empty_queue,
      contender_can_precede_us_after_the_first_list,
      first_list_is_repeated_after_a_break_or_throttling,
      contender_that_waited_is_notified_that_it_is_first,
      waiter_behind_an_announced_holder_sends_no_list,
      without_announcements_each_grant_in_a_long_queue_costs_a_list,
      hold_that_ends_before_its_announcement_costs_a_list,
      waiter_is_notified_that_it_is_the_next,
      announcement_of_a_reader_proves_nothing,
      revocation_in_the_node_is_not_overwritten,
      holder_without_a_node_when_announcing_has_lost_the_lock,
      data_that_contain_the_announcement_are_refused)
