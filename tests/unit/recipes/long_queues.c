/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/rwlock.h>
#include <stdio.h>

/* Queues that are long, or that nobody wants to stand in. */

enum { CROWD = 14 };

static scene sc;
static locker crowd[CROWD];

/* a holds, `count` others wait behind it, each told its place. */
static void begin_crowd(const lk_lock_config *config, int count)
{
  scene_begin(&sc, NULL, config);
  scene_hold(&sc);
  for (int i = 0; i < count; i++) {
    locker_init(&crowd[i], &sc.one, config);
    ck_assert_int_eq(locker_want(&crowd[i], -1), 0);
    model_turn(&sc.server);
  }
  sc.one.link->log[0] = '\0';
}

static void end_crowd(int count)
{
  for (int i = count; i-- > 0;)
    locker_free(&crowd[i]);
  scene_end(&sc);
}

/* ---- max_queue ---------------------------------------------------------- */

START_TEST(contender_behind_too_many_is_refused_at_once)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 3};

  begin_crowd(&config, 2);
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_turn(&sc.server); /* three ahead: the holder and two */
  ck_assert_int_eq(sc.b.acquired, NOT_YET);
  locker_init(&crowd[2], &sc.two, &config);
  sc.two.link->log[0] = '\0';
  ck_assert_int_eq(locker_want(&crowd[2], -1), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(crowd[2].acquired, LK_ERR_QUEUE_FULL);
  ck_assert(model_said(sc.two.link, "create2 getChildren2 | delete"));
  ck_assert(locker_told(&crowd[2], ""));
  ck_assert_uint_eq(model_children(&sc.server, LOCKS), 4);
  ck_assert_uint_eq(lk_lease_pending_cleanups(sc.two.link->client), 0);
  /* when it is shorter there is room again */
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(locker_want(&crowd[2], -1), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(crowd[2].acquired, NOT_YET);
  end_crowd(3);
}
END_TEST

START_TEST(contender_that_lost_its_node_in_a_full_queue_is_refused)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 2};

  begin_crowd(&config, 2);
  model_delete(&sc.server, lk_lock_node(crowd[0].lock));
  model_turn(&sc.server);
  ck_assert_int_eq(crowd[0].acquired, NOT_YET);
  config.max_queue = 1;
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, LK_ERR_QUEUE_FULL);
  ck_assert_uint_eq(model_children(&sc.server, LOCKS), 3);
  end_crowd(2);
}
END_TEST

START_TEST(only_predecessors_that_exclude_are_counted)
{
  lk_lock_config config = {.size = sizeof config, .max_queue = 1};
  lk_rwlock *rw;
  char path[64];

  scene_begin(&sc, NULL, &config);
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, LOCKS "/x-__READ__000000000%d", i);
    model_create(&sc.server, path);
  }
  ck_assert_int_eq(locker_want(&sc.a, -1), 0);
  ck_assert_int_eq(lk_rwlock_new(&rw, sc.two.link->client, LOCKS, &config), 0);
  ck_assert_int_eq(lk_lock_acquire(lk_rwlock_read_side(rw), -1, NULL, NULL), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.acquired, LK_ERR_QUEUE_FULL);
  ck_assert(lk_lock_ok(lk_rwlock_read_side(rw)));
  lk_rwlock_free(rw);
  model_turn(&sc.server);
  for (int i = 0; i < 5; i++)
    model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
  scene_end(&sc);
}
END_TEST

START_TEST(queue_of_ten_thousand_is_logged_once)
{
  char path[64];

  scene_begin(&sc, NULL, NULL);
  for (int i = 0; i < 10000; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_create(&sc.server, path);
  }
  ck_assert_int_eq(locker_want(&sc.a, 0), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.acquired, LK_ERR_BUSY);
  ck_assert_int_eq(locker_want(&sc.a, 0), 0);
  model_turn(&sc.server);
  ck_assert_uint_eq(sc.one.warnings, 1);
  for (int i = 0; i < 10000; i++) {
    snprintf(path, sizeof path, LOCKS "/x-lock-%010d", i);
    model_delete(&sc.server, path);
  }
  scene_end(&sc);
}
END_TEST

/* ---- peek --------------------------------------------------------------- */

START_TEST(list_first_writes_nothing_if_the_queue_is_not_empty)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  scene_begin(&sc, NULL, &config);
  scene_hold(&sc);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(locker_want(&sc.b, 0), 0);
    model_turn(&sc.server);
    ck_assert_int_eq(sc.b.acquired, LK_ERR_BUSY);
    ck_assert(model_said(sc.two.link, "getChildren2"));
  }
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(locker_want(&sc.b, 0), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(model_said(sc.two.link, "getChildren2 | create2 getChildren2"));
  /* who waits in any case does not look */
  sc.one.link->log[0] = '\0';
  ck_assert_int_eq(locker_want(&sc.a, -1), 0);
  model_turn(&sc.server);
  ck_assert(model_said(sc.one.link, "create2 getChildren2 | getData getData"));
  scene_end(&sc);
}
END_TEST

START_TEST(list_first_detects_a_full_queue_without_a_node)
{
  lk_lock_config config = {.size = sizeof config, .peek = true, .max_queue = 1};

  scene_begin(&sc, NULL, &config);
  scene_hold(&sc);
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_turn(&sc.server);
  ck_assert(model_said(sc.two.link, "getChildren2 | create2 getChildren2 | "
                                    "getData getData"));
  locker_init(&crowd[0], &sc.one, &config);
  ck_assert_int_eq(locker_want(&crowd[0], 500), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(crowd[0].acquired, LK_ERR_QUEUE_FULL);
  ck_assert(model_said(sc.one.link, "getChildren2"));
  end_crowd(1);
}
END_TEST

static unsigned throttled;

/* The first four looks are throttled, and then the first create. */
static void throttle_looks_and_create(model_server *s, model_link *l,
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

  scene_begin(&sc, NULL, &config);
  throttled = 0;
  sc.server.before = throttle_looks_and_create;
  ck_assert_int_eq(locker_want(&sc.a, 0), 0);
  for (int ms = 0; ms < 2000 && throttled < 5; ms++)
    model_run(&sc.server, 1);
  ck_assert_uint_eq(throttled, 5);
  ck_assert_int_eq(sc.a.acquired, NOT_YET);
  model_run(&sc.server, 100); /* the first pause is shorter */
  ck_assert_int_eq(sc.a.acquired, 0);
  scene_end(&sc);
}
END_TEST

START_TEST(list_first_takes_a_missing_directory_for_an_empty_queue)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  scene_begin(&sc, NULL, &config);
  model_delete(&sc.server, LOCKS);
  ck_assert_int_eq(locker_want(&sc.a, 0), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.acquired, 0);
  scene_end(&sc);
}
END_TEST

/* Another comes between the look and the create. */
static void get_in_first(model_server *s, model_link *l, int32_t op,
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

  scene_begin(&sc, NULL, &config);
  model_create(&sc.server, LOCKS "/note"); /* takes number 0 */
  sc.server.before = get_in_first;
  ck_assert_int_eq(locker_want(&sc.a, 0), 0);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.a.acquired, LK_ERR_BUSY);
  ck_assert_uint_eq(model_children(&sc.server, LOCKS), 2);
  model_delete(&sc.server, LOCKS "/x-lock-0000000000");
  model_delete(&sc.server, LOCKS "/note");
  scene_end(&sc);
}
END_TEST

START_TEST(first_list_is_repeated_after_a_break_or_throttling)
{
  lk_lock_config config = {.size = sizeof config, .peek = true};

  for (int how = 0; how < 3; how++) {
    scene_begin(&sc, NULL, &config);
    scene_hold(&sc);
    sc.two.link->requests = 0;
    sc.two.link->cut_at = how < 2 ? 1 : 0;
    sc.two.link->cut_after = how == 1;
    sc.two.link->throttle_at = how == 2 ? 1 : 0;
    ck_assert_int_eq(locker_want(&sc.b, 0), 0);
    model_run(&sc.server, T / 2);
    ck_assert_int_eq(sc.b.acquired, LK_ERR_BUSY);
    ck_assert_uint_eq(model_count(sc.two.link, "create2"), 0);
    scene_end(&sc);
  }
}
END_TEST

/* ---- announce ----------------------------------------------------------- */

static const lk_lock_config announcing = {
    .size = sizeof announcing, .announce = true, .data = {"me", 2}};

START_TEST(contender_that_waited_is_notified_that_it_is_first)
{
  const sim_node *n;

  scene_begin(&sc, NULL, &announcing);
  scene_queue(&sc);
  n = model_node(&sc.server, lk_lock_node(sc.a.lock));
  ck_assert_int_eq(n->stat.data_length, 2); /* nobody can be in doubt of it */
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  /* it is the proof of the lease as well; its own watch tells it */
  ck_assert(model_said(sc.two.link, "setData | getData"));
  n = model_node(&sc.server, lk_lock_node(sc.b.lock));
  ck_assert_int_eq(n->stat.data_length, 2 + 8);
  ck_assert_mem_eq(n->data, "me" LK_ANNOUNCEMENT, 10);
  scene_end(&sc);
}
END_TEST

START_TEST(waiter_behind_an_announced_holder_sends_no_list)
{
  begin_crowd(&announcing, CROWD);
  locker_release(&sc.a);
  model_turn(&sc.server);
  for (int i = 0; i < CROWD; i++) {
    ck_assert_int_eq(crowd[i].acquired, 0);
    locker_release(&crowd[i]);
    model_turn(&sc.server);
  }
  ck_assert_uint_eq(model_count(sc.one.link, "getChildren2"), 0);
  end_crowd(CROWD);
}
END_TEST

START_TEST(without_announcements_each_grant_in_a_long_queue_costs_a_list)
{
  begin_crowd(NULL, CROWD);
  locker_release(&sc.a);
  model_turn(&sc.server);
  for (int i = 0; i < CROWD; i++) {
    ck_assert_int_eq(crowd[i].acquired, 0);
    locker_release(&crowd[i]);
    model_turn(&sc.server);
  }
  ck_assert_uint_ge(model_count(sc.one.link, "getChildren2"), CROWD - 9);
  end_crowd(CROWD);
}
END_TEST

static void let_go(locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0)
    locker_release(l);
}

START_TEST(hold_that_ends_before_its_announcement_costs_a_list)
{
  begin_crowd(&announcing, CROWD);
  for (int i = 0; i < CROWD; i++)
    crowd[i].react = let_go;
  locker_release(&sc.a);
  model_turn(&sc.server);
  for (int i = 0; i < CROWD; i++)
    ck_assert_int_eq(crowd[i].released, 0);
  ck_assert_uint_ge(model_count(sc.one.link, "getChildren2"), 1);
  ck_assert_uint_le(model_count(sc.one.link, "getChildren2"), CROWD);
  end_crowd(CROWD);
}
END_TEST

START_TEST(waiter_is_notified_that_it_is_the_next)
{
  begin_crowd(&announcing, CROWD);
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert(locker_told(&crowd[CROWD - 1], "waiting 14 0000000000\n"));
  for (int i = 0; i < CROWD - 2; i++) {
    locker_release(&crowd[i]);
    model_turn(&sc.server);
  }
  ck_assert_int_eq(crowd[CROWD - 2].acquired, 0);
  ck_assert(locker_told(&crowd[CROWD - 1], "waiting 1 0000000013\n"));
  end_crowd(CROWD);
}
END_TEST

START_TEST(announcement_of_a_reader_proves_nothing)
{
  scene_begin(&sc, NULL, &announcing);
  model_create(&sc.server, LOCKS "/a-__READ__0000000000");
  model_create(&sc.server, LOCKS "/b-__READ__0000000001");
  ck_assert_int_eq(locker_want(&sc.b, -1), 0);
  model_turn(&sc.server);
  model_set(&sc.server, LOCKS "/b-__READ__0000000001", LK_ANNOUNCEMENT);
  model_turn(&sc.server);
  model_delete(&sc.server, LOCKS "/b-__READ__0000000001");
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, NOT_YET);
  model_delete(&sc.server, LOCKS "/a-__READ__0000000000");
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  scene_end(&sc);
}
END_TEST

START_TEST(revocation_in_the_node_is_not_overwritten)
{
  const sim_node *n;

  scene_begin(&sc, NULL, &announcing);
  scene_queue(&sc);
  /* both are executed before b hears of either */
  sc.two.link->allow = 0;
  model_set(&sc.server, lk_lock_node(sc.b.lock), LK_REVOKE_MESSAGE);
  sc.two.link->allow = SIZE_MAX;
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(locker_told(&sc.b, "revoked\n"));
  n = model_node(&sc.server, lk_lock_node(sc.b.lock));
  ck_assert_mem_eq(n->data, LK_REVOKE_MESSAGE, 10);
  model_run(&sc.server, T);
  ck_assert(lk_lock_ok(sc.b.lock));
  scene_end(&sc);
}
END_TEST

START_TEST(holder_without_a_node_when_announcing_has_lost_the_lock)
{
  scene_begin(&sc, NULL, &announcing);
  scene_queue(&sc);
  sc.two.link->requests = 0;
  sc.two.link->answer_at = 1;
  sc.two.link->answer_err = LK_ERR_NO_NODE;
  locker_release(&sc.a);
  model_turn(&sc.server);
  ck_assert_int_eq(sc.b.acquired, 0);
  ck_assert(locker_told(&sc.b, "lost NO_NODE\n"));
  model_delete(&sc.server, model_child(&sc.server, LOCKS, 0));
  scene_end(&sc);
}
END_TEST

START_TEST(data_that_contain_the_announcement_are_refused)
{
  lk_lock_config config = {.size = sizeof config};
  lk_lock *l;

  scene_begin(&sc, NULL, NULL);
  config.data = lk_text("me " LK_ANNOUNCEMENT);
  ck_assert_int_eq(lk_lock_new(&l, sc.one.link->client, LOCKS, &config),
                   LK_ERR_BAD_ARGUMENT);
  config.data = lk_text(LK_ANNOUNCEMENT " me");
  ck_assert_int_eq(lk_lock_new(&l, sc.one.link->client, LOCKS, &config), 0);
  lk_lock_free(l);
  scene_end(&sc);
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
