/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The lock of the blocking interface: its holders, waits and releases. */

#include "live/client/sync_world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/call.h"

/* ---- owners -------------------------------------------------------------- */

START_TEST(holder_reads_token_deadline_and_count)
{
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_uint_eq(lk_sync_lock_count(lock), 1);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  int64_t left = lk_sync_lock_deadline(lock) - lk_sync_client_clock(here);

  ck_assert_int_gt(left, 1000);
  ck_assert_int_le(left, 10000);
  uint64_t first_token = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(lk_sync_lock_fd(lock), fd);
  ck_assert(!is_readable(fd));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_acquire(lock, NULL), 0);
  ck_assert_uint_gt(lk_sync_lock_token(lock), first_token);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 0);
}
END_TEST

START_TEST(lock_is_reentrant_in_one_thread)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  uint64_t token = lk_sync_lock_token(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_try(lock, &ten_seconds), 0);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 3);
  ck_assert_uint_eq(lk_sync_lock_token(lock), token);
  ck_assert_uint_eq(count_contenders(), 1);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(lk_sync_lock_release(lock), 0);
    waiter_start(&w, try_clone, (void *)(uintptr_t)&ten_seconds);
    ck_assert_int_eq(waiter_end(&w), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), LK_ERR_BUSY);
  }
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_release(rival), 0);
}
END_TEST

START_TEST(a_thread_may_hold_several_locks)
{
  lk_sync_lock *other;

  ck_assert_int_eq(lk_sync_lock_new(&other, here, "/other", NULL, NULL, NULL),
                   0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert(!lk_sync_lock_ok(other));
  ck_assert_int_eq(lk_sync_lock_release(other), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(other, &ten_seconds), 0);
  ck_assert_uint_ne(lk_sync_lock_token(other), lk_sync_lock_token(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert(lk_sync_lock_ok(other));
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(other), 0);
  lk_sync_lock_free(other);
}
END_TEST

/* ---- waiting ------------------------------------------------------------- */

START_TEST(timed_out_acquire_leaves_no_node)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
  int64_t begun_ms = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun_ms + brief.timeout_ms);
  ck_assert_int_eq(lk_sync_lock_try(lock, &brief), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_server_sync(here, "/", &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  ck_assert_uint_gt(lock_events.waiting, 0);
}
END_TEST

START_TEST(release_wait_ends_at_its_deadline)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  server_ask(&zk, "stop 1");
  int64_t begun_ms = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun_ms + brief.timeout_ms);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
}
END_TEST

START_TEST(cancelled_acquire_leaves_no_node)
{
  lk_sync_cancel *cancel;
  lk_sync_call call = {.size = sizeof call};
  waiter w[5];

  ck_assert_int_eq(lk_sync_cancel_new(&cancel, here), 0);
  call.cancel = cancel;
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
  for (int i = 0; i < 5; i++)
    waiter_start(&w[i], acquire_clone, &call);
  while (count_contenders() < 6)
    usleep(1000);
  lk_sync_cancel_set(cancel);
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CANCELLED);
  ck_assert_int_eq(lk_sync_server_sync(here, "/", &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  lk_sync_cancel_free(cancel);
}
END_TEST

START_TEST(release_grants_the_next_waiter)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  waiter_start(&w, acquire_rival, (void *)(uintptr_t)&ten_seconds);
  while (count_contenders() < 2)
    usleep(1000);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(closing_releases_locks_and_ends_waits)
{
  waiter w[10];

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  int fd = lk_sync_lock_fd(lock);

  for (int i = 0; i < 10; i++)
    waiter_start(&w[i], acquire_clone, NULL);
  while (count_contenders() < 11)
    usleep(1000);
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  for (int i = 0; i < 10; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CLOSED);
  ck_assert_uint_eq(lock_events.lost, 1);
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_CLOSED);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(is_readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &ten_seconds), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), LK_ERR_CLOSED);
  ck_assert_uint_eq(count_contenders(), 0);
}
END_TEST

static int close_here(void *arg)
{
  (void)arg;
  return lk_sync_client_close(here);
}

/* lk_sync_client_close() waits at most this long for the reply. */
enum { CLOSE_TIMEOUT_MS = 1500 };

START_TEST(closing_loses_the_lock_before_the_server_replies)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  server_ask(&zk, "stop 1");
  int64_t begun_ms = lk_sync_client_clock(here);

  waiter_start(&w, close_here, NULL);
  while (lk_sync_lock_ok(lock))
    ck_assert_int_lt(lk_sync_client_clock(here),
                     begun_ms + CLOSE_TIMEOUT_MS - 100);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun_ms + CLOSE_TIMEOUT_MS);
  server_ask(&zk, "cont 1");
}
END_TEST

/* ---- threads that end ---------------------------------------------------- */

static int acquire_lock(void *call)
{
  return lk_sync_lock_acquire(lock, call);
}

/* The next thread may have the pthread_t of the one that has ended. */
START_TEST(end_of_a_thread_releases_nothing)
{
  waiter w;

  waiter_start(&w, acquire_lock, (void *)(uintptr_t)&ten_seconds);
  ck_assert_int_eq(waiter_end(&w), 0);
  for (int i = 0; i < 20; i++) {
    waiter_start(&w, acquire_lock, (void *)(uintptr_t)&ten_seconds);
    ck_assert_int_eq(waiter_end(&w), LK_ERR_STATE);
  }
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
}
END_TEST

START_TEST(freeing_a_held_lock_releases_it)
{
  lk_sync_lock *other = clone_of(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_try(other, &ten_seconds), LK_ERR_BUSY);
  lk_sync_lock_free(lock);
  lock = NULL;
  ck_assert_int_eq(lk_sync_lock_acquire(other, &ten_seconds), 0);
  lk_sync_lock_free(other);
}
END_TEST

/* ---- fork ---------------------------------------------------------------- */

/* End the child without the exit handlers of the test program. */
static void exit_in_child(void)
{
  _exit(0);
}

START_TEST(forked_child_does_not_hold)
{
  int status;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  int fd = lk_sync_lock_fd(lock);

  pthread_mutex_lock(&here->mutex); /* as if another thread were in a call */
  pid_t child = fork();

  if (child == 0) {
    alarm(20); /* kills the child if a call blocks */
    if (lk_sync_lock_ok(lock) || lk_sync_lock_token(lock) != 0 ||
        lk_sync_lock_count(lock) != 0 ||
        lk_sync_lock_get_state(lock) != LK_LOCK_IDLE ||
        lk_sync_lock_deadline(lock) != INT64_MIN)
      _exit(1);
    if (lk_sync_lock_release(lock) != LK_ERR_FORKED ||
        lk_sync_lock_acquire(lock, NULL) != LK_ERR_FORKED ||
        lk_sync_lock_verify(lock, NULL) != LK_ERR_FORKED)
      _exit(2);
    lk_sync_lock_free(lock);
    lk_sync_client_free(here);
    atexit(exit_in_child);
    pthread_exit(NULL); /* exits the process, as this is its last thread */
  }
  pthread_mutex_unlock(&here->mutex);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert(!is_readable(fd));
  ck_assert_int_eq(lk_sync_lock_verify(lock, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &ten_seconds), 0);
}
END_TEST

TCase *lock_tests(void)
{
  const TTest *const tests[] = {
      holder_reads_token_deadline_and_count,
      lock_is_reentrant_in_one_thread,
      a_thread_may_hold_several_locks,
      timed_out_acquire_leaves_no_node,
      release_wait_ends_at_its_deadline,
      cancelled_acquire_leaves_no_node,
      release_grants_the_next_waiter,
      closing_releases_locks_and_ends_waits,
      closing_loses_the_lock_before_the_server_replies,
      end_of_a_thread_releases_nothing,
      freeing_a_held_lock_releases_it,
      forked_child_does_not_hold,
  };
  TCase *t = tcase_create("locks");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
