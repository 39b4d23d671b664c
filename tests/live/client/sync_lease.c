/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking interface: events and lease deadline of a held lock. */

#include "live/client/sync_world.h"

#include <unistd.h>

enum { TIMEOUT_MS = 2000 };

/* Whether lk_sync_lock_ok() returns true for this long. No request is sent. */
static bool stays_ok_for(int64_t ms)
{
  int64_t end = lk_sync_client_clock(here) + ms;
  bool ok = true;

  while (ok && lk_sync_client_clock(here) < end)
    ok = lk_sync_lock_ok(lock);
  return ok;
}

START_TEST(session_survives_while_the_holder_computes)
{
  restart_with_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert(stays_ok_for(2 * TIMEOUT_MS + TIMEOUT_MS / 2));
  ck_assert_uint_eq(lock_events.unsure, 0);
  ck_assert_uint_eq(count_contenders(), 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}
END_TEST

START_TEST(deleted_contender_node_loses_the_lock)
{
  lk_op op = lk_op_create("/taken", lk_text(""), NULL, 0);
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), 0);
  delete_contender_nodes();
  wait_for_event(&lock_events.lost);
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_NO_NODE);
  ck_assert_uint_eq(lock_events.token, token);
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
  ck_assert_uint_eq(lock_events.lost, 1);
}
END_TEST

START_TEST(verify_and_guarded_multi_find_a_loss)
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
  delete_contender_nodes(); /* no event: the node is not watched yet */
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, NULL, &op, 1, &soon),
                   LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_exists(there, NULL, "/guarded", &soon),
                   LK_ERR_NO_NODE);
  ck_assert_uint_eq(lock_events.lost, 1);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  delete_contender_nodes();
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_LOST);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(lk_sync_lock_fd(lock)));
}
END_TEST

/* Verify again after a verify that timed out. The call is refused with
 * LK_ERR_STATE until the request of the first verify has completed. The event
 * HELD does not show that, since the reply to a ping may have caused it. */
static int verify_again(void)
{
  int err = LK_ERR_STATE;

  for (int i = 0; i < 5000 && err == LK_ERR_STATE; i++) {
    err = lk_sync_lock_verify(lock, &soon);
    usleep(1000);
  }
  return err;
}

/* The server is stopped, and continued before the session expires. */
START_TEST(unsure_is_reported_before_the_deadline_and_taken_back)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 50};

  restart_with_timeout(2 * TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  int fd = lk_sync_lock_fd(lock);

  server_ask(&zk, "stop 1");
  int64_t until = lk_sync_lock_deadline(lock);

  wait_for_event(&lock_events.unsure);
  ck_assert_int_lt(lk_sync_client_clock(here), until);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_UNSURE);
  ck_assert_int_eq(lk_sync_lock_deadline(lock), until);
  ck_assert_uint_ne(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_STATE);
  server_ask(&zk, "cont 1");
  wait_for_event(&lock_events.held);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert(!readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  ck_assert_int_eq(verify_again(), 0);
  ck_assert_uint_eq(lock_events.lost, 0);
}
END_TEST

static void sleep_through(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
  usleep((TIMEOUT_MS + 200) * 1000);
}

static int block_client_thread(void *arg)
{
  return lk_sync_client_run_on_thread(here, sleep_through, arg);
}

START_TEST(lock_is_not_ok_past_the_deadline_while_the_client_sleeps)
{
  waiter w;

  restart_with_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, block_client_thread, NULL);
  waiters_inside(here, 1);
  usleep(50000); /* wait until the client's thread is in sleep_through() */
  int64_t until = lk_sync_lock_deadline(lock);

  ck_assert(lk_sync_lock_ok(lock));
  while (lk_sync_lock_ok(lock))
    ck_assert_int_lt(lk_sync_client_clock(here), until + 100);
  ck_assert_int_ge(lk_sync_client_clock(here), until);
  ck_assert_uint_eq(lock_events.unsure, 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(expired_session_loses_the_lock)
{
  restart_with_timeout(TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  server_ask(&zk, "stop 1");
  usleep(50000); /* wait until outstanding replies have arrived */
  int64_t until = lk_sync_lock_deadline(lock);

  while (lock_events.lost == 0) {
    bool doubted = lock_events.unsure > 0;
    bool late = lk_sync_client_clock(here) >= until;

    ck_assert(!lk_sync_lock_ok(lock) || (!doubted && !late));
  }
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_SESSION_EXPIRED);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
}
END_TEST

TCase *lease_tests(void)
{
  const TTest *const tests[] = {
      session_survives_while_the_holder_computes,
      deleted_contender_node_loses_the_lock,
      verify_and_guarded_multi_find_a_loss,
      unsure_is_reported_before_the_deadline_and_taken_back,
      lock_is_not_ok_past_the_deadline_while_the_client_sleeps,
      expired_session_loses_the_lock,
  };
  TCase *t = tcase_create("lease");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
