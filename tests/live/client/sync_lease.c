/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking interface: events and lease deadline of a held lock. */

#include "live/client/sync_world.h"

#include <poll.h>
#include <unistd.h>

enum { SESSION_TIMEOUT_MS = 2000 };

/* Whether lk_sync_lock_ok() returns true for this long. The thread sends no
 * request meanwhile. */
static bool lock_stays_ok_for(int64_t ms)
{
  int64_t end = lk_sync_client_clock(here) + ms;
  bool is_ok = true;

  while (is_ok && lk_sync_client_clock(here) < end)
    is_ok = lk_sync_lock_ok(lock);
  return is_ok;
}

START_TEST(lock_stays_ok_while_its_holder_sends_no_request)
{
  renew_here_with_timeout(SESSION_TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert(lock_stays_ok_for(2 * SESSION_TIMEOUT_MS + SESSION_TIMEOUT_MS / 2));
  ck_assert_uint_eq(lock_events.unsure, 0);
  ck_assert_uint_eq(count_contenders(), 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}
END_TEST

START_TEST(deleted_contender_node_loses_the_lock)
{
  lk_op create = lk_op_create("/taken", lk_text(""), NULL, 0);
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_eq(lk_sync_lock_verify(lock, &ten_seconds), 0);
  delete_contender_nodes();
  wait_for_event(&lock_events.lost);
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_NO_NODE);
  ck_assert(is_readable(fd));
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_uint_eq(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_deadline(lock), INT64_MIN);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(lk_sync_lock_fd(lock), fd);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &ten_seconds), LK_ERR_LOST);
  ck_assert_int_eq(
      lk_sync_lock_guarded_multi(lock, &r, &create, 1, &ten_seconds),
      LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert(!is_readable(lk_sync_lock_fd(lock)));
  ck_assert_uint_eq(lock_events.lost, 1);
}
END_TEST

START_TEST(verify_and_guarded_multi_find_a_loss)
{
  lk_op create = lk_op_create("/guarded", lk_text(""), NULL, LK_EPHEMERAL);
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert_int_eq(
      lk_sync_lock_guarded_multi(lock, &r, &create, 1, &ten_seconds), 0);
  ck_assert_str_eq(r->results[0].path, "/guarded");
  lk_sync_result_free(r);
  ck_assert_int_eq(
      lk_sync_lock_guarded_multi(lock, &r, &create, 1, &ten_seconds),
      LK_ERR_NODE_EXISTS);
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_delete(there, "/guarded", -1, &ten_seconds), 0);
  delete_contender_nodes(); /* no event: the node is not watched yet */
  ck_assert_int_eq(
      lk_sync_lock_guarded_multi(lock, NULL, &create, 1, &ten_seconds),
      LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_exists(there, NULL, "/guarded", &ten_seconds),
                   LK_ERR_NO_NODE);
  ck_assert_uint_eq(lock_events.lost, 1);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &ten_seconds), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  delete_contender_nodes();
  ck_assert_int_eq(lk_sync_lock_verify(lock, &ten_seconds), LK_ERR_LOST);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(is_readable(lk_sync_lock_fd(lock)));
}
END_TEST

/* Verify again after a verify that timed out. The call is refused with
 * LK_ERR_STATE until the request of the first verify has completed. The event
 * RENEWED does not show that, since the reply to a ping may have caused it. */
static int verify_again(void)
{
  int err = LK_ERR_STATE;

  for (int i = 0; i < 5000 && err == LK_ERR_STATE; i++) {
    err = lk_sync_lock_verify(lock, &ten_seconds);
    usleep(1000);
  }
  return err;
}

/* The server is stopped, and continued before the session expires. */
START_TEST(unsure_precedes_the_deadline_and_a_reply_renews_the_lock)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 50};

  renew_here_with_timeout(2 * SESSION_TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  int fd = lk_sync_lock_fd(lock);

  server_ask(&zk, "stop 1");
  int64_t deadline = lk_sync_lock_deadline(lock);

  wait_for_event(&lock_events.unsure);
  ck_assert_int_lt(lk_sync_client_clock(here), deadline);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(is_readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_UNSURE);
  ck_assert_int_eq(lk_sync_lock_deadline(lock), deadline);
  ck_assert_uint_ne(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_STATE);
  server_ask(&zk, "cont 1");
  wait_for_event(&lock_events.renewed);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert(!is_readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  ck_assert_int_eq(verify_again(), 0);
  ck_assert_uint_eq(lock_events.lost, 0);
}
END_TEST

static void sleep_past_the_deadline(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
  /* usleep() need not take a second or more. */
  poll(NULL, 0, SESSION_TIMEOUT_MS + 200);
}

static int block_client_thread(void *arg)
{
  return lk_sync_client_run_on_thread(here, sleep_past_the_deadline, arg);
}

START_TEST(lock_is_not_ok_past_the_deadline_if_the_client_thread_sleeps)
{
  waiter w;

  renew_here_with_timeout(SESSION_TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  waiter_start(&w, block_client_thread, NULL);
  waiters_inside(here, 1);
  /* Wait until the client's thread is in sleep_past_the_deadline(). */
  usleep(50000);
  int64_t deadline = lk_sync_lock_deadline(lock);

  ck_assert(lk_sync_lock_ok(lock));
  while (lk_sync_lock_ok(lock))
    ck_assert_int_lt(lk_sync_client_clock(here), deadline + 100);
  ck_assert_int_ge(lk_sync_client_clock(here), deadline);
  ck_assert_uint_eq(lock_events.unsure, 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(expired_session_loses_the_lock)
{
  renew_here_with_timeout(SESSION_TIMEOUT_MS);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  server_ask(&zk, "stop 1");
  usleep(50000); /* wait until outstanding replies have arrived */
  int64_t deadline = lk_sync_lock_deadline(lock);

  while (lock_events.lost == 0) {
    bool was_unsure = lock_events.unsure > 0;
    bool is_past_deadline = lk_sync_client_clock(here) >= deadline;

    ck_assert(!lk_sync_lock_ok(lock) || (!was_unsure && !is_past_deadline));
  }
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_SESSION_EXPIRED);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
}
END_TEST

TCase *lease_tests(void)
{
  const TTest *const tests[] = {
      lock_stays_ok_while_its_holder_sends_no_request,
      deleted_contender_node_loses_the_lock,
      verify_and_guarded_multi_find_a_loss,
      unsure_precedes_the_deadline_and_a_reply_renews_the_lock,
      lock_is_not_ok_past_the_deadline_if_the_client_thread_sleeps,
      expired_session_loses_the_lock,
  };
  TCase *t = tcase_create("lease");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
