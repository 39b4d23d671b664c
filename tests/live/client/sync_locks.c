/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The lock of the blocking face: who holds, who waits, who may release. */

#include "live/client/sync_world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sync/lock_owner.h"

/* ---- owners -------------------------------------------------------------- */

START_TEST(a_holder_knows_what_it_has)
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
  ck_assert_uint_eq(contenders(), 0);
}
END_TEST

START_TEST(a_thread_may_acquire_again)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_try(lock, &soon), 0);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 3);
  ck_assert_uint_eq(lk_sync_lock_token(lock), token);
  ck_assert_uint_eq(contenders(), 1);
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

/* What a thread finds that does not hold. */
static int be_a_stranger(void *arg)
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

START_TEST(a_stranger_cannot_release)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, be_a_stranger, NULL);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_HELD);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}
END_TEST

/* ---- waiting ------------------------------------------------------------- */

START_TEST(a_deadline_leaves_nothing_behind)
{
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 100};

  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  int64_t begun = lk_sync_client_clock(here);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &brief), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(here), begun + 100);
  ck_assert_int_eq(lk_sync_lock_try(lock, &brief), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(contenders(), 1);
  ck_assert_uint_gt(told.waiting, 0);
  ck_assert_uint_eq(told.token, 0);
}
END_TEST

START_TEST(a_release_waits_no_longer_than_it_may)
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

START_TEST(a_cancel_leaves_nothing_behind)
{
  lk_sync_cancel *cancel;
  lk_sync_call call = {.size = sizeof call};
  waiter w[5];

  ck_assert_int_eq(lk_sync_cancel_new(&cancel, here), 0);
  call.cancel = cancel;
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  for (int i = 0; i < 5; i++)
    waiter_start(&w[i], take_lock, &call);
  while (contenders() < 6)
    usleep(1000);
  lk_sync_cancel_set(cancel);
  for (int i = 0; i < 5; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CANCELLED);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(contenders(), 1);
  lk_sync_cancel_free(cancel);
}
END_TEST

START_TEST(waiters_get_it_in_turn)
{
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, take_rival, (void *)(uintptr_t)&soon);
  while (contenders() < 2)
    usleep(1000);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(waiter_end(&w), 0);
}
END_TEST

START_TEST(closing_gives_up_what_is_held_and_ends_who_waits)
{
  waiter w[10];

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  uint64_t token = lk_sync_lock_token(lock);
  int fd = lk_sync_lock_fd(lock);

  for (int i = 0; i < 10; i++)
    waiter_start(&w[i], take_lock, NULL);
  while (contenders() < 11)
    usleep(1000);
  ck_assert_int_eq(lk_sync_client_close(here), 0);
  for (int i = 0; i < 10; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CLOSED);
  ck_assert_uint_eq(told.lost, 1);
  ck_assert_int_eq(told.lost_err, LK_ERR_CLOSED);
  ck_assert_uint_eq(told.token, token);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert(readable(fd));
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_CLOSED);
  ck_assert_uint_eq(contenders(), 0);
}
END_TEST

static int close_here(void *arg)
{
  (void)arg;
  return lk_sync_client_close(here);
}

START_TEST(closing_is_told_before_a_server_hears_of_it)
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

static int take_twice(void *call)
{
  int err = lk_sync_lock_acquire(lock, call);

  return err != 0 ? err : lk_sync_lock_acquire(lock, call);
}

START_TEST(a_thread_that_ends_releases)
{
  waiter w;

  for (int i = 0; i < 20; i++) {
    waiter_start(&w, take_twice, (void *)(uintptr_t)&soon);
    ck_assert_int_eq(waiter_end(&w), 0);
    /* It may have got the id of the one that ended. */
    waiter_start(&w, be_a_stranger, NULL);
    ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_HELD);
  }
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_uint_eq(contenders(), 1);
}
END_TEST

static atomic_uint taken, go_on;

static int take_and_wait(void *arg)
{
  int err = lk_sync_lock_acquire(lock, &soon);

  (void)arg;
  taken++;
  while (go_on == 0)
    usleep(1000);
  return err;
}

START_TEST(freeing_a_lock_releases_what_others_hold)
{
  lk_sync_lock *other;
  waiter w;

  ck_assert_int_eq(
      lk_sync_lock_new(&other, here, lk_sync_lock_path(lock), NULL), 0);
  waiter_start(&w, take_and_wait, NULL);
  sync_world_await(&taken);
  ck_assert_int_eq(lk_sync_lock_try(other, &soon), LK_ERR_BUSY);
  lk_sync_lock_free(lock);
  lock = NULL;
  ck_assert_int_eq(lk_sync_lock_acquire(other, &soon), 0);
  go_on = 1;
  ck_assert_int_eq(waiter_end(&w), 0);
  lk_sync_lock_free(other);
}
END_TEST

/* The memory of the lock that one thread freed, for its next lock. */
typedef struct niche {
  pthread_t thread;
  void *kept;
} niche;

static void *resize(void *arg, void *p, size_t size)
{
  niche *n = arg;
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

START_TEST(a_lock_in_the_place_of_another_is_another)
{
  niche n = {.thread = pthread_self()};
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

START_TEST(a_client_may_go_before_who_held)
{
  waiter w;

  waiter_start(&w, take_and_wait, NULL);
  sync_world_await(&taken);
  lk_sync_lock_free(lock);
  lk_sync_client_free(here);
  go_on = 1;
  ck_assert_int_eq(waiter_end(&w), 0);
  lock = NULL;
  ck_assert_int_eq(lk_sync_client_new(&here, NULL), 0);
}
END_TEST

/* ---- fork ---------------------------------------------------------------- */

static void leave(void)
{
  _exit(0);
}

START_TEST(a_child_does_not_hold)
{
  int status;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  int fd = lk_sync_lock_fd(lock);

  pthread_mutex_lock(&here->mutex); /* it might be anybody's */
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
    atexit(leave);
    pthread_exit(NULL); /* the last thread, which held: as exit() */
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
      a_holder_knows_what_it_has,
      a_thread_may_acquire_again,
      a_thread_may_hold_several_locks,
      a_stranger_cannot_release,
      a_deadline_leaves_nothing_behind,
      a_release_waits_no_longer_than_it_may,
      a_cancel_leaves_nothing_behind,
      waiters_get_it_in_turn,
      closing_gives_up_what_is_held_and_ends_who_waits,
      closing_is_told_before_a_server_hears_of_it,
      a_thread_that_ends_releases,
      freeing_a_lock_releases_what_others_hold,
      a_lock_in_the_place_of_another_is_another,
      a_client_may_go_before_who_held,
      a_child_does_not_hold,
  };
  TCase *t = tcase_create("locks");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_test(t, tests[i]);
  return t;
}
