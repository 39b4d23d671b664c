/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking face of the other kinds of locks. */

#include "live/client/sync_world.h"

#include <pthread.h>
#include <stdio.h>

static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 200};

static int try_it(void *l)
{
  int err = lk_sync_lock_try(l, &soon);

  if (err == 0)
    err = lk_sync_lock_release_wait(l, &soon);
  return err;
}

/* What another thread finds that tries. */
static int others_find(lk_sync_lock *l)
{
  waiter w;

  waiter_start(&w, try_it, l);
  return waiter_end(&w);
}

static int take_it(void *l)
{
  int err = lk_sync_lock_acquire(l, &soon);

  return err != 0 ? err : lk_sync_lock_release_wait(l, &soon);
}

static const char *where(void)
{
  return lk_sync_lock_path(lock);
}

/* ---- read-write locks -----------------------------------------------------
 */

static lk_sync_rwlock *rw;
static lk_sync_lock *r, *w;

static void begin_rwlock(void)
{
  ck_assert_int_eq(lk_sync_rwlock_new(&rw, here, where(), NULL), 0);
  r = lk_sync_rwlock_read_side(rw);
  w = lk_sync_rwlock_write_side(rw);
}

START_TEST(readers_share_and_a_writer_is_alone)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0);
  ck_assert_int_eq(others_find(r), 0);
  ck_assert_int_eq(others_find(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_try(rival, &soon), LK_ERR_BUSY);
  ck_assert(lk_sync_lock_ok(r) && !lk_sync_lock_ok(w));
  ck_assert_int_eq(lk_sync_lock_release_wait(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  ck_assert_int_eq(others_find(r), LK_ERR_BUSY);
  ck_assert_int_eq(others_find(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(w, &soon), 0);
  ck_assert_int_eq(others_find(w), 0);
  lk_sync_rwlock_free(rw);
}
END_TEST

START_TEST(a_reader_cannot_become_a_writer_and_is_told_at_once)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), LK_ERR_DEADLOCK);
  ck_assert(lk_sync_lock_ok(r));
  ck_assert_uint_eq(lk_sync_lock_count(w), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  lk_sync_rwlock_free(rw); /* which releases */
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
}
END_TEST

START_TEST(a_downgrade_lets_readers_in_and_no_writer)
{
  waiter writer;

  begin_rwlock();
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rw, &soon), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  uint64_t token = lk_sync_lock_token(w);

  waiter_start(&writer, take_it, w);
  waiters_inside(here, 1);
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rw, &soon), 0);
  ck_assert(lk_sync_lock_ok(r) && !lk_sync_lock_ok(w));
  ck_assert_uint_eq(lk_sync_lock_token(r), token);
  ck_assert_int_eq(lk_sync_lock_verify(r, &soon), 0);
  ck_assert_int_eq(others_find(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0); /* counts */
  ck_assert_int_eq(lk_sync_lock_release(r), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(r, &soon), 0);
  ck_assert_int_eq(waiter_end(&writer), 0);
  lk_sync_rwlock_free(rw);
}
END_TEST

START_TEST(sides_are_released_in_any_order)
{
  begin_rwlock();
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
    ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0);
    ck_assert_int_eq(lk_sync_lock_release_wait(i == 0 ? r : w, &soon), 0);
    ck_assert_uint_eq(contenders(), 1);
    ck_assert(lk_sync_lock_ok(i == 0 ? w : r));
    ck_assert_int_eq(lk_sync_lock_release_wait(i == 0 ? w : r, &soon), 0);
    ck_assert_uint_eq(contenders(), 0);
  }
  lk_sync_rwlock_free(rw);
}
END_TEST

START_TEST(a_side_that_waits_has_its_deadline_and_leaves_nothing)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(r, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(contenders(), 1);
  lk_sync_rwlock_free(rw);
}
END_TEST

/* ---- semaphores -----------------------------------------------------------
 */

static lk_sync_lock *permits_of(int32_t permits, int32_t take)
{
  lk_semaphore_config options = {
      .size = sizeof options, .permits = permits, .take = take};
  char path[128];
  lk_sync_lock *l;

  snprintf(path, sizeof path, "%s-permits", where());
  ck_assert_int_eq(lk_sync_semaphore_new(&l, here, path, NULL, &options), 0);
  return l;
}

static int hold_until(void *arg)
{
  void **both = arg;
  int err = lk_sync_lock_acquire(both[0], &soon);

  pthread_mutex_lock(both[1]);
  pthread_mutex_unlock(both[1]);
  return err != 0 ? err : lk_sync_lock_release(both[0]);
}

START_TEST(permits_are_held_by_as_many_threads_once_each)
{
  pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;
  lk_sync_lock *l = permits_of(2, 1);
  void *both[] = {l, &stop};
  waiter other;

  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), LK_ERR_DEADLOCK);
  ck_assert_uint_eq(lk_sync_lock_count(l), 1);
  ck_assert_int_eq(others_find(l), 0);
  pthread_mutex_lock(&stop);
  waiter_start(&other, hold_until, both);
  while (others_find(l) != LK_ERR_BUSY)
    ;
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  pthread_mutex_unlock(&stop);
  ck_assert_int_eq(waiter_end(&other), 0);
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  lk_sync_lock_free(l);
}
END_TEST

START_TEST(several_permits_are_taken_together)
{
  lk_sync_lock *two = permits_of(3, 2), *one = permits_of(3, 1);

  ck_assert_int_eq(lk_sync_lock_acquire(two, &soon), 0);
  ck_assert_int_eq(others_find(two), LK_ERR_BUSY);
  ck_assert_int_eq(others_find(one), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(two, &soon), 0);
  ck_assert_int_eq(others_find(two), 0);
  lk_sync_lock_free(one);
  lk_sync_lock_free(two);
}
END_TEST

static lk_stat leases(void)
{
  char path[128];
  lk_stat stat = {0};

  snprintf(path, sizeof path, "%s-permits/leases", where());
  ck_assert_int_eq(lk_sync_exists(here, &stat, path, &soon), 0);
  return stat;
}

/* Each acquire has a handle of its own; what they learn is the lock's. */
START_TEST(who_failed_three_times_asks_for_its_place_first)
{
  pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;
  lk_sync_lock *l = permits_of(1, 1), *other = permits_of(1, 1);
  void *both[] = {l, &stop};
  waiter first;

  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  waiter_start(&first, hold_until, both);
  while (leases().num_children < 2)
    ;
  for (int i = 0; i < 6; i++) {
    int32_t before = leases().cversion;

    ck_assert_int_eq(lk_sync_lock_try(other, &soon), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_sync(here, where(), &soon), 0);
    ck_assert((i < 3) == (leases().cversion > before));
  }
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(waiter_end(&first), 0);
  lk_sync_lock_free(other);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- several at once ------------------------------------------------------
 */

START_TEST(several_locks_are_taken_together)
{
  char other[128];

  snprintf(other, sizeof other, "%s-other", where());
  lk_multilock_member members[] = {
      {.path = other, .side = LK_MULTILOCK_READ},
      {.path = where(), .side = LK_MULTILOCK_MUTEX}};
  lk_sync_lock *l;

  ck_assert_int_eq(lk_sync_multilock_new(&l, here, members, 2, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, where()), lk_sync_lock_token(l));
  ck_assert_uint_ne(lk_sync_multilock_token(l, other), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, "/no"), 0);
  ck_assert_int_eq(lk_sync_lock_try(rival, &soon), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &soon), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, where()), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_release(rival), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  evict_all();
  ck_assert_int_eq(lk_sync_lock_verify(l, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(l), LK_ERR_LOST);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- a single node --------------------------------------------------------
 */

START_TEST(a_single_node_is_held_by_one_thread)
{
  char path[128];
  lk_sync_lock *l;

  snprintf(path, sizeof path, "%s-single", where());
  ck_assert_int_eq(lk_sync_single_new(&l, here, path, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(others_find(l), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &soon), 0);
  ck_assert_int_eq(others_find(l), 0);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- one node for all threads ---------------------------------------------
 */

enum { THREADS = 40 };

static lk_sync_lock *shared;
static unsigned inside;
static uint64_t last_token, last_turn;

static int take_turns(void *arg)
{
  (void)arg;
  int err = lk_sync_lock_acquire(shared, &soon);

  if (err != 0)
    return err;
  uint64_t token = lk_sync_lock_token(shared);
  uint64_t turn = lk_sync_lock_handoffs(shared);

  if (++inside != 1 || token < last_token ||
      (token == last_token && turn <= last_turn))
    err = LK_ERR_STATE;
  last_token = token;
  last_turn = turn;
  if (contenders() > 2) /* own, and one that is being deleted */
    err = LK_ERR_TOO_MANY;
  inside--;
  lk_sync_lock_release(shared);
  return err;
}

START_TEST(threads_share_a_node)
{
  lk_sync_lock_config config = {.size = sizeof config, .local_queue = true};
  waiter crowd[THREADS];

  ck_assert_int_eq(lk_sync_lock_new(&shared, here, where(), &config), 0);
  last_token = 0;
  for (int i = 0; i < THREADS; i++)
    waiter_start(&crowd[i], take_turns, NULL);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(waiter_end(&crowd[i]), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  lk_sync_lock_free(shared);
}
END_TEST

/* ---- what is refused ------------------------------------------------------
 */

START_TEST(constructors_refuse_what_the_recipes_refuse)
{
  lk_semaphore_config none = {.size = sizeof none};
  lk_sync_lock_config local = {.size = sizeof local, .local_queue = true};
  lk_sync_lock_config word = {.size = sizeof word,
                              .data = lk_text(LK_REVOKE_MESSAGE)};
  lk_multilock_member twice[] = {{"/a", LK_MULTILOCK_READ},
                                 {"/a", LK_MULTILOCK_WRITE}};
  lk_sync_rwlock *none_rw;
  lk_sync_lock *l;

  ck_assert_int_eq(lk_sync_lock_new(&l, here, "/a", &word),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(lk_sync_semaphore_new(&l, here, "/a", NULL, &none),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_semaphore_new(&l, here, "/a", NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_multilock_new(&l, here, twice, 2, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_multilock_new(&l, here, twice, 0, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_rwlock_new(&none_rw, here, "/a", &local),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(none_rw);
  lk_sync_rwlock_free(NULL);
}
END_TEST

TCase *kind_tests(void)
{
  TCase *t = tcase_create("kinds");

  tcase_add_test(t, readers_share_and_a_writer_is_alone);
  tcase_add_test(t, a_reader_cannot_become_a_writer_and_is_told_at_once);
  tcase_add_test(t, a_downgrade_lets_readers_in_and_no_writer);
  tcase_add_test(t, sides_are_released_in_any_order);
  tcase_add_test(t, a_side_that_waits_has_its_deadline_and_leaves_nothing);
  tcase_add_test(t, permits_are_held_by_as_many_threads_once_each);
  tcase_add_test(t, several_permits_are_taken_together);
  tcase_add_test(t, who_failed_three_times_asks_for_its_place_first);
  tcase_add_test(t, several_locks_are_taken_together);
  tcase_add_test(t, a_single_node_is_held_by_one_thread);
  tcase_add_test(t, threads_share_a_node);
  tcase_add_test(t, constructors_refuse_what_the_recipes_refuse);
  return t;
}
