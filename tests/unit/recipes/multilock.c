/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>

/* Multi-locks, and single locks of their members, on one server. */

static model_server server;
static test_client one;
static test_client two;
static locker all;   /* multi-lock of client one: /m/a, /m/b, /m/c */
static locker other; /* multi-lock of client two, with the same members */
static locker b;     /* mutex of client two: /m/b */

static const lk_multilock_member members[] = {{"/m/b", LK_MULTILOCK_MUTEX},
                                              {"/m/a", LK_MULTILOCK_MUTEX},
                                              {"/m/c", LK_MULTILOCK_MUTEX},
                                              {"/m/b", LK_MULTILOCK_MUTEX}};

static bool try_init(locker *l, test_client *p)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = locker_on_event, .arg = l};

  locker_clear(l, p);
  return lk_multilock_new(&l->lock, p->link->client, members, 4, &config,
                          NULL) == 0;
}

static void single(locker *l, test_client *p, const char *path)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = locker_on_event, .arg = l};

  locker_clear(l, p);
  ck_assert_int_eq(lk_lock_new(&l->lock, p->link->client, path, &config), 0);
}

static void make_dirs(void)
{
  model_create(&server, "/m");
  model_create(&server, "/m/a");
  model_create(&server, "/m/b");
  model_create(&server, "/m/c");
}

static void begin(void)
{
  model_init(&server);
  make_dirs();
  test_client_init(&one, &server, NULL);
  test_client_init(&two, &server, NULL);
  ck_assert(try_init(&all, &one));
  ck_assert(try_init(&other, &two));
  single(&b, &two, "/m/b");
  model_turn(&server);
}

static size_t left(void)
{
  return model_children(&server, "/m/a") + model_children(&server, "/m/b") +
         model_children(&server, "/m/c");
}

static void end(void)
{
  locker_free(&all);
  locker_free(&other);
  locker_free(&b);
  model_run(&server, T);
  ck_assert_uint_eq(left(), 0);
  test_client_free(&one);
  test_client_free(&two);
  model_done(&server);
}

static void start_acquire(locker *l)
{
  ck_assert_int_eq(locker_acquire(l, LK_NO_LIMIT), 0);
  model_turn(&server);
}

static void get(locker *l)
{
  start_acquire(l);
  ck_assert_int_eq(l->acquired, 0);
}

static void release_lock(locker *l)
{
  locker_release(l);
  model_turn(&server);
}

/* ---- together ---------------------------------------------------------- */

START_TEST(members_acquired_in_one_transaction_have_one_token)
{
  begin();
  get(&all);
  uint64_t token = lk_lock_token(all.lock);

  ck_assert_uint_gt(token, 0);
  ck_assert_uint_eq(lk_multilock_token(all.lock, "/m/a"), token);
  ck_assert_uint_eq(lk_multilock_token(all.lock, "/m/c"), token);
  ck_assert_uint_eq(lk_multilock_token(all.lock, "/m/d"), 0);
  end();
}
END_TEST

START_TEST(two_multilocks_of_the_same_members_alternate)
{
  locker *holder = &all, *waiter = &other;

  begin();
  get(&all);
  start_acquire(&other);
  for (int i = 0; i < 10; i++) {
    locker *next = waiter;

    ck_assert_int_eq(next->acquired, NOT_YET);
    release_lock(holder);
    ck_assert_int_eq(next->acquired, 0);
    ck_assert(lk_lock_ok(next->lock));
    start_acquire(holder);
    waiter = holder;
    holder = next;
  }
  end();
}
END_TEST

/* The lock directory `path` has one node: that of the member. */
static void expect_node(const char *path)
{
  ck_assert_str_eq(lk_multilock_node(all.lock, path),
                   model_child(&server, path, 0));
}

START_TEST(members_after_a_busy_one_are_released)
{
  locker c;

  begin();
  single(&c, &two, "/m/c");
  get(&b);
  start_acquire(&all);
  ck_assert_int_eq(all.acquired, NOT_YET);
  ck_assert_uint_eq(model_children(&server, "/m/a"), 1);
  ck_assert_uint_eq(model_children(&server, "/m/b"), 2);
  ck_assert_uint_eq(model_children(&server, "/m/c"), 0);
  expect_node("/m/a");
  ck_assert_ptr_null(lk_multilock_node(all.lock, "/m/c"));
  get(&c);
  release_lock(&b);
  ck_assert_int_eq(all.acquired, NOT_YET);
  release_lock(&c);
  ck_assert_int_eq(all.acquired, 0);
  expect_node("/m/b");
  expect_node("/m/c");
  ck_assert_ptr_null(lk_multilock_node(all.lock, "/m/d"));
  ck_assert_uint_gt(lk_multilock_token(all.lock, "/m/c"),
                    lk_multilock_token(all.lock, "/m/a"));
  ck_assert_uint_eq(lk_lock_token(all.lock),
                    lk_multilock_token(all.lock, "/m/c"));
  locker_free(&c);
  end();
}
END_TEST

START_TEST(sides_of_read_write_locks_are_members)
{
  static const lk_multilock_member mixed[] = {{"/m/a", LK_MULTILOCK_READ},
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
  get(&first);
  get(&second); /* both readers hold */
  start_acquire(&b);
  ck_assert_int_eq(b.acquired, NOT_YET);
  locker_free(&first);
  locker_free(&second);
  model_turn(&server);
  ck_assert_int_eq(b.acquired, 0);
  end();
}
END_TEST

START_TEST(bad_members_are_refused)
{
  static const lk_multilock_member twice[] = {{"/m/a", LK_MULTILOCK_READ},
                                              {"/m/a", LK_MULTILOCK_WRITE}};
  static const lk_multilock_member bad[] = {{"m", LK_MULTILOCK_MUTEX}};
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

/* ---- not at all -------------------------------------------------------- */

/* The directory of the other member exists. */
START_TEST(refused_create_of_a_directory_is_the_result)
{
  static const lk_multilock_member far[] = {{"/d/c", LK_MULTILOCK_MUTEX},
                                            {"/m/a", LK_MULTILOCK_MUTEX}};
  locker l;

  begin();
  model_create(&server, "/d");
  model_deny(&server, "/d", LK_PERM_CREATE);
  locker_clear(&l, &one);
  ck_assert_int_eq(
      lk_multilock_new(&l.lock, one.link->client, far, 2, NULL, NULL), 0);
  start_acquire(&l);
  ck_assert_int_eq(l.acquired, LK_ERR_NO_AUTH);
  locker_free(&l);
  end();
}
END_TEST

/* The transaction under way names a node that is to be deleted as well. */
START_TEST(loss_of_a_member_during_the_acquire_starts_it_again)
{
  begin();
  get(&b);
  start_acquire(&all);
  model_run(&server, T / 2);
  one.link->frozen = true;
  release_lock(&b);
  model_delete(&server, model_child(&server, "/m/a", 0));
  model_turn(&server);
  ck_assert_ptr_nonnull(strstr(all.events, "place lost NO_NODE\n"));
  one.link->frozen = false;
  model_run(&server, T / 4);
  ck_assert_int_eq(all.acquired, 0);
  ck_assert_uint_eq(left(), 3);
  end();
}
END_TEST

/* The first of three lists is throttled. The second member is granted before
 * the client knows, and the third is requested although it must be given
 * back. */
START_TEST(member_is_requested_after_all_earlier_ones_are_held)
{
  locker a;

  begin();
  single(&a, &two, "/m/a");
  get(&a);
  get(&b);
  one.link->requests = 0;
  one.link->throttle_at = 2;
  start_acquire(&all);
  ck_assert(locker_check_events(&all, "waiting 1 0000000000\n"));
  one.link->frozen = true;
  model_run(&server, 200);
  release_lock(&b);
  one.link->frozen = false;
  model_turn(&server);
  ck_assert(locker_check_events(&all, "waiting 1 0000000000\n"));
  ck_assert_uint_eq(model_children(&server, "/m/c"), 0);
  release_lock(&a);
  ck_assert_int_eq(all.acquired, 0);
  release_lock(&all);
  ck_assert_uint_eq(left(), 0);
  locker_free(&a);
  end();
}
END_TEST

/* One node cannot be deleted. This is reported, and the acquire continues. */
START_TEST(node_that_cannot_be_deleted_does_not_stop_the_acquire)
{
  begin();
  one.link->requests = 0;
  one.link->cut_at = 1;
  one.link->cut_after = true;
  model_deny(&server, "/m/b", LK_PERM_DELETE);
  ck_assert_int_eq(locker_acquire(&all, 0), 0);
  model_run(&server, T / 2);
  ck_assert_int_eq(all.acquired, LK_ERR_BUSY);
  ck_assert_str_ne(one.left_behind, "");
  model_deny(&server, "/m/b", 0);
  model_expire(&server, one.link->session);
  model_drop(one.link);
  end();
}
END_TEST

/* The multi-lock is freed at each point in time while own nodes from before a
 * break may be deleted. */
START_TEST(multilock_freed_during_a_cleanup_leaves_nothing)
{
  for (unsigned at = 1; at <= 8; at++) {
    for (int64_t ms = 0; ms < T / 10; ms += T / 200) {
      begin();
      one.link->requests = 0;
      one.link->cut_at = at / 2;
      one.link->cut_after = at % 2 == 0;
      ck_assert_int_eq(locker_acquire(&all, LK_NO_LIMIT), 0);
      model_run(&server, ms);
      locker_free(&all);
      model_run(&server, T);
      ck_assert_uint_eq(left(), 0);
      end();
    }
  }
}
END_TEST

static void free_it(lk_lock *l, int err, void *result)
{
  *(int *)result = err;
  lk_lock_free(l);
}

/* It has no node yet, so only the end of the client can end the acquire. */
START_TEST(multilock_may_be_freed_with_its_client)
{
  int result = NOT_YET;

  begin();
  server.down = true;
  model_drop(one.link);
  model_run(&server, T / 10);
  ck_assert_int_eq(lk_lock_acquire(all.lock, T, free_it, &result), 0);
  lk_client_free(one.link->client);
  one.link->client = NULL;
  all.lock = NULL;
  ck_assert_int_eq(result, LK_ERR_CLOSED);
  server.down = false;
  model_expire(&server, one.link->last_session);
  end();
}
END_TEST

START_TEST(refused_credentials_end_the_client_and_all_requests)
{
  begin();
  get(&b);
  start_acquire(&all);
  one.link->answer_at = one.link->requests + 1;
  one.link->answer_err = LK_ERR_AUTH_REQUIRED;
  lk_get(one.link->client, "/m", NULL, NULL, NULL);
  model_turn(&server);
  ck_assert_int_eq(all.acquired, LK_ERR_AUTH_FAILED);
  lk_client_free(
      one.link->client); /* the multi-lock is still a listener of the client */
  one.link->client = NULL;
  model_expire(&server, one.link->last_session);
  end();
}
END_TEST

SUITE("multilock", members_acquired_in_one_transaction_have_one_token,
      two_multilocks_of_the_same_members_alternate,
      members_after_a_busy_one_are_released,
      sides_of_read_write_locks_are_members, bad_members_are_refused,
      refused_create_of_a_directory_is_the_result,
      loss_of_a_member_during_the_acquire_starts_it_again,
      member_is_requested_after_all_earlier_ones_are_held,
      node_that_cannot_be_deleted_does_not_stop_the_acquire,
      multilock_freed_during_a_cleanup_leaves_nothing,
      multilock_may_be_freed_with_its_client,
      refused_credentials_end_the_client_and_all_requests)
