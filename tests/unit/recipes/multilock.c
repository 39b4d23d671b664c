/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>

/* Multi-locks, and mutexes of their members, on one server. */

enum {
  DENY_NOTHING = 0 /* as permissions */
};

static model_server server;
static test_client one;
static test_client two;
static locker multilock; /* multi-lock of client one: /m/a, /m/b, /m/c */
static locker mutex_b;   /* mutex of client two: /m/b */

/* Members may be in any order and occur twice. */
static const lk_multilock_part members[] = {{"/m/b", LK_MULTILOCK_MUTEX},
                                            {"/m/a", LK_MULTILOCK_MUTEX},
                                            {"/m/c", LK_MULTILOCK_MUTEX},
                                            {"/m/b", LK_MULTILOCK_MUTEX}};

static void init_multilock(void)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = locker_on_event, .arg = &multilock};

  locker_clear(&multilock, &one);
  ck_assert_int_eq(lk_multilock_new(&multilock.lock, one.link->client, members,
                                    4, &config, NULL),
                   0);
}

static void init_mutex(locker *l, test_client *p, const char *path)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = locker_on_event, .arg = l};

  locker_clear(l, p);
  ck_assert_int_eq(lk_lock_new(&l->lock, p->link->client, path, &config), 0);
}

static void create_directories(void)
{
  model_create(&server, "/m");
  model_create(&server, "/m/a");
  model_create(&server, "/m/b");
  model_create(&server, "/m/c");
}

static void begin(void)
{
  model_init(&server);
  create_directories();
  test_client_init(&one, &server, NULL);
  test_client_init(&two, &server, NULL);
  init_multilock();
  init_mutex(&mutex_b, &two, "/m/b");
  model_turn(&server);
}

static size_t nodes_left(void)
{
  return model_children(&server, "/m/a") + model_children(&server, "/m/b") +
         model_children(&server, "/m/c");
}

static void end(void)
{
  locker_free(&multilock);
  locker_free(&mutex_b);
  model_run(&server, T);
  ck_assert_uint_eq(nodes_left(), 0);
  test_client_free(&one);
  test_client_free(&two);
  model_done(&server);
}

static void acquire_now(locker *l)
{
  locker_request(l);
  ck_assert_int_eq(l->acquired, 0);
}

static void release_lock(locker *l)
{
  locker_release(l);
  model_turn(&server);
}

/* ---- acquired together ------------------------------------------------- */

START_TEST(members_acquired_in_one_transaction_have_one_token)
{
  begin();
  acquire_now(&multilock);
  uint64_t token = lk_lock_token(multilock.lock);

  ck_assert_uint_gt(token, 0);
  ck_assert_uint_eq(lk_multilock_token(multilock.lock, "/m/a"), token);
  ck_assert_uint_eq(lk_multilock_token(multilock.lock, "/m/c"), token);
  ck_assert_uint_eq(lk_multilock_token(multilock.lock, "/m/d"), 0);
  end();
}
END_TEST

/* The only node in the lock directory `path` is that of the member. */
static void expect_node(const char *path)
{
  ck_assert_str_eq(lk_multilock_node(multilock.lock, path),
                   model_child(&server, path, 0));
}

START_TEST(members_after_a_busy_one_are_released)
{
  locker c;

  begin();
  init_mutex(&c, &two, "/m/c");
  acquire_now(&mutex_b);
  locker_request(&multilock);
  ck_assert_int_eq(multilock.acquired, NOT_YET);
  ck_assert_uint_eq(model_children(&server, "/m/a"), 1);
  ck_assert_uint_eq(model_children(&server, "/m/b"), 2); /* holder and waiter */
  ck_assert_uint_eq(model_children(&server, "/m/c"), 0);
  expect_node("/m/a");
  ck_assert_ptr_null(lk_multilock_node(multilock.lock, "/m/c"));
  acquire_now(&c);
  release_lock(&mutex_b);
  ck_assert_int_eq(multilock.acquired, NOT_YET);
  release_lock(&c);
  ck_assert_int_eq(multilock.acquired, 0);
  expect_node("/m/b");
  expect_node("/m/c");
  ck_assert_ptr_null(lk_multilock_node(multilock.lock, "/m/d"));
  ck_assert_uint_gt(lk_multilock_token(multilock.lock, "/m/c"),
                    lk_multilock_token(multilock.lock, "/m/a"));
  ck_assert_uint_eq(lk_lock_token(multilock.lock),
                    lk_multilock_token(multilock.lock, "/m/c"));
  locker_free(&c);
  end();
}
END_TEST

START_TEST(sides_of_read_write_locks_are_members)
{
  static const lk_multilock_part mixed[] = {{"/m/a", LK_MULTILOCK_READ},
                                            {"/m/b", LK_MULTILOCK_WRITE}};
  locker first, second;

  begin();
  locker_clear(&first, &one);
  locker_clear(&second, &two);
  ck_assert_int_eq(
      lk_multilock_new(&first.lock, one.link->client, mixed, 2, NULL, NULL), 0);
  ck_assert_int_eq(
      lk_multilock_new(&second.lock, two.link->client, mixed, 1, NULL, NULL),
      0);
  acquire_now(&first);
  acquire_now(&second); /* both readers hold */
  locker_request(&mutex_b);
  ck_assert_int_eq(mutex_b.acquired, NOT_YET);
  locker_free(&first);
  locker_free(&second);
  model_turn(&server);
  ck_assert_int_eq(mutex_b.acquired, 0);
  end();
}
END_TEST

START_TEST(bad_members_are_refused)
{
  static const lk_multilock_part twice[] = {{"/m/a", LK_MULTILOCK_READ},
                                            {"/m/a", LK_MULTILOCK_WRITE}};
  static const lk_multilock_part bad[] = {{"m", LK_MULTILOCK_MUTEX}};
  lk_lock *l;

  begin();
  ck_assert_int_eq(lk_multilock_new(&l, one.link->client, twice, 2, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_multilock_new(&l, one.link->client, bad, 1, NULL, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_multilock_new(&l, one.link->client, bad, 0, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(l);
  end();
}
END_TEST

/* ---- refusals, losses and frees ---------------------------------------- */

/* The own node in /m/a is deleted while the server reads no requests of the
 * client. */
START_TEST(loss_of_a_member_during_the_acquire_starts_it_again)
{
  begin();
  acquire_now(&mutex_b);
  locker_request(&multilock);
  model_run(&server, T / 2);
  one.link->frozen = true;
  release_lock(&mutex_b);
  model_delete(&server, model_child(&server, "/m/a", 0));
  model_turn(&server);
  ck_assert_ptr_nonnull(strstr(multilock.events, "place lost NO_NODE\n"));
  one.link->frozen = false;
  model_run(&server, T / 4);
  ck_assert_int_eq(multilock.acquired, 0);
  ck_assert_uint_eq(nodes_left(), 3);
  end();
}
END_TEST

/* Nothing that the leader has committed proves the lease for a while, so the
 * member that is held becomes unsure. Its check completes after the grant of
 * the last member. */
START_TEST(member_granted_while_another_is_unsure_completes_the_acquire)
{
  begin();
  acquire_now(&mutex_b);
  locker_request(&multilock);
  one.link->multi_err = LK_ERR_SYSTEM;
  model_run(&server, T);
  one.link->multi_err = 0;
  release_lock(&mutex_b);
  model_run(&server, T / 4);
  ck_assert_int_eq(multilock.acquired, 0);
  ck_assert(lk_lock_ok(multilock.lock));
  end();
}
END_TEST

/* The first list is throttled. Before it is repeated, /m/b becomes free; /m/a
 * is still held by another client. */
START_TEST(member_is_requested_only_after_all_earlier_ones_are_held)
{
  locker a;

  begin();
  init_mutex(&a, &two, "/m/a");
  acquire_now(&a);
  acquire_now(&mutex_b);
  one.link->requests = 0;
  one.link->throttle_at = 2;
  locker_request(&multilock);
  ck_assert(locker_check_events(&multilock, "waiting 1 0000000000\n"));
  one.link->frozen = true;
  model_run(&server, 200);
  release_lock(&mutex_b);
  one.link->frozen = false;
  model_turn(&server);
  ck_assert(locker_check_events(&multilock, "waiting 1 0000000000\n"));
  ck_assert_uint_eq(model_children(&server, "/m/c"), 0);
  release_lock(&a);
  ck_assert_int_eq(multilock.acquired, 0);
  release_lock(&multilock);
  ck_assert_uint_eq(nodes_left(), 0);
  locker_free(&a);
  end();
}
END_TEST

/* After the lost reply, the nodes that were created are deleted, except in
 * /m/b. */
START_TEST(node_that_cannot_be_deleted_is_reported_and_the_acquire_completes)
{
  begin();
  one.link->requests = 0;
  one.link->cut_at = 1;
  one.link->cut_after = true;
  model_deny(&server, "/m/b", LK_PERM_DELETE);
  ck_assert_int_eq(locker_try_with_next_connection(&multilock), 0);
  model_run(&server, T / 2);
  /* its earlier node in /m/b precedes the new one */
  ck_assert_int_eq(multilock.acquired, LK_ERR_BUSY);
  ck_assert_str_ne(one.left_behind, "");
  model_deny(&server, "/m/b", DENY_NOTHING);
  model_expire(&server, one.link->session);
  model_drop(one.link);
  end();
}
END_TEST

/* ---- errors in the results of a transaction ------------------------------ */

/* A server that keeps the session as a local one refuses ephemeral nodes with
 * SESSION_EXPIRED in the results, and resumes the session all the same. */
START_TEST(multilock_ends_if_its_session_is_a_local_one)
{
  begin();
  one.link->multi_err = LK_ERR_SESSION_EXPIRED;
  locker_request(&multilock);
  model_run(&server, T);
  ck_assert_int_eq(multilock.acquired, LK_ERR_EPHEMERAL_ON_LOCAL_SESSION);
  ck_assert_uint_eq(model_count(one.link, "multi"), 3);
  one.link->multi_err = 0;
  acquire_now(&multilock);
  end();
}
END_TEST

START_TEST(multilock_is_acquired_on_the_connection_after_a_refused_one)
{
  static const int errors[] = {LK_ERR_SESSION_EXPIRED, LK_ERR_SESSION_MOVED};

  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    begin();
    one.link->multi_err = errors[i];
    locker_request(&multilock);
    ck_assert_int_eq(lk_client_state(one.link->client), LK_STATE_SUSPENDED);
    one.link->multi_err = 0;
    model_run(&server, T / 10);
    ck_assert_int_eq(multilock.acquired, 0);
    end();
  }
}
END_TEST

SUITE("multilock", multilock_ends_if_its_session_is_a_local_one,
      multilock_is_acquired_on_the_connection_after_a_refused_one,
      members_acquired_in_one_transaction_have_one_token,
      members_after_a_busy_one_are_released,
      member_granted_while_another_is_unsure_completes_the_acquire,
      sides_of_read_write_locks_are_members, bad_members_are_refused,
      loss_of_a_member_during_the_acquire_starts_it_again,
      member_is_requested_only_after_all_earlier_ones_are_held,
      node_that_cannot_be_deleted_is_reported_and_the_acquire_completes)
