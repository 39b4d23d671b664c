/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The lock of the blocking interface: its holders, waits and releases. */

#include "live/client/sync_world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/lock_owner.h"

/* ---- owners -------------------------------------------------------------- */

START_TEST(holder_reads_token_deadline_and_count)
{
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_uint_eq(lk_sync_lock_count(lock), 1);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  int64_t left = lk_sync_lock_deadline(lock) - lk_sync_client_clock(here);

  ck_assert_int_gt(left, 1000);
  ck_assert_int_le(left, 10000);
  uint64_t first = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(lk_sync_lock_fd(lock), fd);
  ck_assert(!readable(fd));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_acquire(lock, NULL), 0);
  ck_assert_uint_gt(lk_sync_lock_token(lock), first);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
  ck_assert_uint_eq(count_contenders(), 0);
}
END_TEST

START_TEST(lock_is_reentrant_in_one_thread)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_try(lock, &soon), 0);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 3);
  ck_assert_uint_eq(lk_sync_lock_token(lock), token);
  ck_assert_uint_eq(count_contenders(), 1);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(lk_sync_lock_release(lock), 0);
    waiter_start(&w, try_lock, (void *)(uintptr_t)&soon);
    ck_assert_int_eq(waiter_end(&w), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_lock_try(rival, &soon), LK_ERR_BUSY);
  }
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_try(rival, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_release(rival), 0);
}
END_TEST

START_TEST(a_thread_may_hold_several_locks)
{
  lk_sync_lock *other;

  ck_assert_int_eq(lk_sync_lock_new(&other, here, "/other", NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert(!lk_sync_lock_ok(other));
  ck_assert_int_eq(lk_sync_lock_release(other), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(other, &soon), 0);
  ck_assert_uint_ne(lk_sync_lock_token(other), lk_sync_lock_token(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert(lk_sync_lock_ok(other));
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(other), 0);
  lk_sync_lock_free(other);
}
END_TEST

/* Make each call that needs the lock, in a thread that does not hold it.
 * Returns 0 if a call does not report that, else the error of the release. */
static int use_without_holding(void *arg)
{
  (void)arg;
  if (lk_sync_lock_ok(lock) || lk_sync_lock_token(lock) != 0 ||
      lk_sync_lock_count(lock) != 0 ||
      lk_sync_lock_get_state(lock) != LK_LOCK_IDLE ||
      lk_sync_lock_verify(lock, &soon) != LK_ERR_NOT_HELD ||
      lk_sync_lock_release_wait(lock, &soon) != LK_ERR_NOT_HELD)
    return 0;
  return lk_sync_lock_release(lock);
}

START_TEST(other_thread_cannot_release)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, use_without_holding, NULL);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_HELD);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}
END_TEST

/* ---- waiting ------------------------------------------------------------- */

START_TEST(timed_out_acquire_leaves_no_node)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  int64_t begun = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun + 100);
  ck_assert_int_eq(lk_sync_lock_try(lock, &brief), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  ck_assert_uint_gt(lock_events.waiting, 0);
  ck_assert_uint_eq(lock_events.token, 0);
}
END_TEST

START_TEST(release_wait_ends_at_its_deadline)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  server_ask(&zk, "stop 1");
  int64_t begun = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun + 100);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  server_ask(&zk, "cont 1");
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
}
END_TEST

START_TEST(cancelled_acquire_leaves_no_node)
{
  lk_sync_cancel *cancel;
  lk_sync_call call = {.size = sizeof call};
  waiter w[5];

  ck_assert_int_eq(lk_sync_cancel_new(&cancel, here), 0);
  call.cancel = cancel;
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  for (int i = 0; i < 5; i++)
    waiter_start(&w[i], acquire_lock, &call);
  while (count_contenders() < 6)
    usleep(1000);
  lk_sync_cancel_set(cancel);
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CANCELLED);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  lk_sync_cancel_free(cancel);
}
END_TEST

START_TEST(release_grants_the_next_waiter)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, acquire_rival, (void *)(uintptr_t)&soon);
  while (count_contenders() < 2)
    usleep(1000);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(closing_releases_locks_and_ends_waits)
{
  waiter w[10];

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  for (int i = 0; i < 10; i++)
    waiter_start(&w[i], acquire_lock, NULL);
  while (count_contenders() < 11)
    usleep(1000);
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  for (int i = 0; i < 10; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CLOSED);
  ck_assert_uint_eq(lock_events.lost, 1);
  ck_assert_int_eq(lock_events.lost_err, LK_ERR_CLOSED);
  ck_assert_uint_eq(lock_events.token, token);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_CLOSED);
  ck_assert_uint_eq(count_contenders(), 0);
}
END_TEST

static int close_here(void *arg)
{
  (void)arg;
  return lk_sync_client_close(here);
}

START_TEST(closing_loses_the_lock_before_the_server_replies)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  server_ask(&zk, "stop 1");
  int64_t begun = lk_sync_client_clock(here);

  waiter_start(&w, close_here, NULL);
  while (lk_sync_lock_ok(lock))
    ck_assert_int_lt(lk_sync_client_clock(here), begun + 1400);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun + 1500);
  server_ask(&zk, "cont 1");
}
END_TEST

/* ---- threads that end ---------------------------------------------------- */

static int acquire_twice(void *call)
{
  int err = lk_sync_lock_acquire(lock, call);

  return err != 0 ? err : lk_sync_lock_acquire(lock, call);
}

START_TEST(exit_of_a_thread_releases)
{
  waiter w;

  for (int i = 0; i < 20; i++) {
    waiter_start(&w, acquire_twice, (void *)(uintptr_t)&soon);
    ck_assert_int_eq(waiter_end(&w), 0);
    /* The new thread may have the id of the thread that ended. */
    waiter_start(&w, use_without_holding, NULL);
    ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_HELD);
  }
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_uint_eq(count_contenders(), 1);
}
END_TEST

static atomic_uint acquired, go_on;

static int acquire_and_wait(void *arg)
{
  int err = lk_sync_lock_acquire(lock, &soon);

  (void)arg;
  acquired++;
  while (go_on == 0)
    usleep(1000);
  return err;
}

START_TEST(freeing_a_lock_releases_it_for_its_holder)
{
  lk_sync_lock *other;
  waiter w;

  ck_assert_int_eq(
      lk_sync_lock_new(&other, here, lk_sync_lock_path(lock), NULL), 0);
  waiter_start(&w, acquire_and_wait, NULL);
  wait_for_event(&acquired);
  ck_assert_int_eq(lk_sync_lock_try(other, &soon), LK_ERR_BUSY);
  lk_sync_lock_free(lock);
  lock = NULL;
  ck_assert_int_eq(lk_sync_lock_acquire(other, &soon), 0);
  go_on = 1;
  ck_assert_int_eq(waiter_end(&w), 0);
  lk_sync_lock_free(other);
}
END_TEST

/* The state of an allocator that uses the memory of a freed lock for the next
 * lock, so that the two have the same address. */
typedef struct freed_lock_memory {
  pthread_t thread;
  void *kept;
} freed_lock_memory;

static void *resize(void *arg, void *p, size_t size)
{
  freed_lock_memory *n = arg;
  bool ours = pthread_equal(pthread_self(), n->thread) != 0;

  if (ours && size == 0 && p != NULL && p == (void *)lock) {
    n->kept = p;
    return NULL;
  }
  if (ours && size == sizeof(lk_sync_lock) && p == NULL && n->kept != NULL) {
    p = n->kept;
    n->kept = NULL;
    return p;
  }
  if (size > 0)
    return realloc(p, size);
  free(p);
  return NULL;
}

START_TEST(lock_at_the_address_of_a_freed_lock_is_not_held)
{
  freed_lock_memory n = {.thread = pthread_self()};
  lk_mem mem = {.resize = resize, .arg = &n};
  lk_client_config how = {.size = sizeof how, .hosts = zk.hosts, .mem = &mem};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  lk_sync_client *c;

  lk_sync_lock_free(lock);
  ck_assert_int_eq(lk_sync_client_new(&c, &config), 0);
  ck_assert_int_eq(lk_sync_lock_new(&lock, c, "/place", NULL), 0);
  lk_sync_lock *first = lock;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  lk_sync_lock_free(lock);
  ck_assert_int_eq(lk_sync_lock_new(&lock, c, "/place", NULL), 0);
  ck_assert_ptr_eq(lock, first);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  lk_sync_lock_free(lock);
  lk_sync_client_free(c);
  free(n.kept);
  lock = NULL;
}
END_TEST

START_TEST(client_may_be_freed_before_its_holder_ends)
{
  waiter w;

  waiter_start(&w, acquire_and_wait, NULL);
  wait_for_event(&acquired);
  lk_sync_lock_free(lock);
  lk_sync_client_free(here);
  go_on = 1;
  ck_assert_int_eq(waiter_end(&w), 0);
  lock = NULL;
  ck_assert_int_eq(lk_sync_client_new(&here, NULL), 0);
}
END_TEST

/* ---- fork ---------------------------------------------------------------- */

static void exit_in_child(void)
{
  _exit(0);
}

START_TEST(forked_child_does_not_hold)
{
  int status;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  int fd = lk_sync_lock_fd(lock);

  pthread_mutex_lock(&here->mutex); /* as if another thread were in a call */
  pid_t child = fork();

  if (child == 0) {
    alarm(20);
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
  ck_assert(!readable(fd));
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
}
END_TEST

TCase *lock_tests(void)
{
  const TTest *const tests[] = {
      holder_reads_token_deadline_and_count,
      lock_is_reentrant_in_one_thread,
      a_thread_may_hold_several_locks,
      other_thread_cannot_release,
      timed_out_acquire_leaves_no_node,
      release_wait_ends_at_its_deadline,
      cancelled_acquire_leaves_no_node,
      release_grants_the_next_waiter,
      closing_releases_locks_and_ends_waits,
      closing_loses_the_lock_before_the_server_replies,
      exit_of_a_thread_releases,
      freeing_a_lock_releases_it_for_its_holder,
      lock_at_the_address_of_a_freed_lock_is_not_held,
      client_may_be_freed_before_its_holder_ends,
      forked_child_does_not_hold,
  };
  TCase *t = tcase_create("locks");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
