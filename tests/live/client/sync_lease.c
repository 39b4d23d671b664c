/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The lock of the blocking face: what its holder is told while it works. */

#include "live/client/sync_world.h"

#include <unistd.h>

enum { TIMEOUT_MS = 2000 };

/* Look all the time, and make no call. */
static bool compute(int64_t ms)
{
  int64_t end = lk_sync_client_clock(here) + ms;
  bool ok = true;

  while (ok && lk_sync_client_clock(here) < end)
    ok = lk_sync_lock_ok(lock);
  return ok;
}

START_TEST(the_session_lives_while_the_holder_works)
{
  sync_world_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert(compute(2 * TIMEOUT_MS + TIMEOUT_MS / 2));
  ck_assert_uint_eq(told.unsure, 0);
  ck_assert_uint_eq(contenders(), 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}
END_TEST

START_TEST(an_operator_takes_it_away)
{
  lk_op op = lk_op_create("/taken", lk_text(""), NULL, 0);
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), 0);
  evict_all();
  sync_world_await(&told.lost);
  ck_assert_int_eq(told.lost_err, LK_ERR_NO_NODE);
  ck_assert_uint_eq(told.token, token);
  ck_assert(readable(fd));
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_uint_eq(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_deadline(lock), INT64_MIN);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(lk_sync_lock_fd(lock), fd);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, &r, &op, 1, &soon),
                   LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert(!readable(lk_sync_lock_fd(lock)));
  ck_assert_uint_eq(told.lost, 1);
}
END_TEST

START_TEST(a_loss_is_found_by_asking)
{
  lk_op op = lk_op_create("/guarded", lk_text(""), NULL, LK_EPHEMERAL);
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, &r, &op, 1, &soon), 0);
  ck_assert_str_eq(r->results[0].path, "/guarded");
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, &r, &op, 1, &soon),
                   LK_ERR_NODE_EXISTS);
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_delete(there, "/guarded", -1, &soon), 0);
  evict_all(); /* not watched yet: nobody tells */
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, NULL, &op, 1, &soon),
                   LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_exists(there, NULL, "/guarded", &soon),
                   LK_ERR_NO_NODE);
  ck_assert_uint_eq(told.lost, 1);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  evict_all();
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_LOST);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(lk_sync_lock_fd(lock)));
}
END_TEST

/* When the one that was given up has been answered too: HELD may be told of a
 * ping, which overtakes it. */
static int verify_again(void)
{
  int err = LK_ERR_STATE;

  for (int i = 0; i < 5000 && err == LK_ERR_STATE; i++) {
    err = lk_sync_lock_verify(lock, &soon);
    usleep(1000);
  }
  return err;
}

/* Until the server is silent for good, or speaks again. */
START_TEST(doubt_is_told_in_time_and_taken_back)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 50};

  sync_world_timeout(2 * TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  int fd = lk_sync_lock_fd(lock);

  server_ask(&zk, "stop 1");
  int64_t until = lk_sync_lock_deadline(lock);

  sync_world_await(&told.unsure);
  ck_assert_int_lt(lk_sync_client_clock(here), until);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_UNSURE);
  ck_assert_int_eq(lk_sync_lock_deadline(lock), until);
  ck_assert_uint_ne(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_STATE);
  server_ask(&zk, "cont 1");
  sync_world_await(&told.held);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert(!readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  ck_assert_int_eq(verify_again(), 0);
  ck_assert_uint_eq(told.lost, 0);
}
END_TEST

static void sleep_through(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
  usleep((TIMEOUT_MS + 200) * 1000);
}

static int hold_up(void *arg)
{
  return lk_sync_client_run_on_thread(here, sleep_through, arg);
}

START_TEST(a_thread_that_sleeps_makes_nobody_sure)
{
  waiter w;

  sync_world_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, hold_up, NULL);
  waiters_inside(here, 1);
  usleep(50000); /* it sleeps */
  int64_t until = lk_sync_lock_deadline(lock);

  ck_assert(lk_sync_lock_ok(lock));
  while (lk_sync_lock_ok(lock))
    ck_assert_int_lt(lk_sync_client_clock(here), until + 100);
  ck_assert_int_ge(lk_sync_client_clock(here), until);
  ck_assert_uint_eq(told.unsure, 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(a_session_that_ends_takes_the_lock)
{
  sync_world_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  server_ask(&zk, "stop 1");
  usleep(50000); /* its last answers */
  int64_t until = lk_sync_lock_deadline(lock);

  while (told.lost == 0) {
    bool doubted = told.unsure > 0;
    bool late = lk_sync_client_clock(here) >= until;

    ck_assert(!lk_sync_lock_ok(lock) || (!doubted && !late));
  }
  ck_assert_int_eq(told.lost_err, LK_ERR_SESSION_EXPIRED);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
}
END_TEST

TCase *lease_tests(void)
{
  const TTest *const tests[] = {
      the_session_lives_while_the_holder_works,
      an_operator_takes_it_away,
      a_loss_is_found_by_asking,
      doubt_is_told_in_time_and_taken_back,
      a_thread_that_sleeps_makes_nobody_sure,
      a_session_that_ends_takes_the_lock,
  };
  TCase *t = tcase_create("lease");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
