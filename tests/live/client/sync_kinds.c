/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* All kinds of locks except the mutex, in the blocking interface. */

#include "live/client/sync_world.h"

#include <pthread.h>
#include <stdio.h>

static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 200};

static int try_and_release(void *l)
{
  int err = lk_sync_lock_try(l, &soon);

  if (err == 0)
    err = lk_sync_lock_release_wait(l, &soon);
  return err;
}

/* The result of try_and_release() in another thread. */
static int try_in_other_thread(lk_sync_lock *l)
{
  waiter w;

  waiter_start(&w, try_and_release, l);
  return waiter_end(&w);
}

static int acquire_and_release(void *l)
{
  int err = lk_sync_lock_acquire(l, &soon);

  return err != 0 ? err : lk_sync_lock_release_wait(l, &soon);
}

static const char *lock_path(void)
{
  return lk_sync_lock_path(lock);
}

/* ---- read-write locks --------------------------------------------------- */

/* The read-write lock of the running test; `r` and `w` are its read and write
 * side. */
static lk_sync_rwlock *rw;
static lk_sync_lock *r, *w;

static void begin_rwlock(void)
{
  ck_assert_int_eq(lk_sync_rwlock_new(&rw, here, lock_path(), NULL), 0);
  r = lk_sync_rwlock_read_side(rw);
  w = lk_sync_rwlock_write_side(rw);
}

START_TEST(readers_share_and_writers_exclude)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(r), 0);
  ck_assert_int_eq(try_in_other_thread(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_try(rival, &soon), LK_ERR_BUSY);
  ck_assert(lk_sync_lock_ok(r) && !lk_sync_lock_ok(w));
  ck_assert_int_eq(lk_sync_lock_release_wait(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(r), LK_ERR_BUSY);
  ck_assert_int_eq(try_in_other_thread(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(w, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(w), 0);
  lk_sync_rwlock_free(rw);
}
END_TEST

START_TEST(upgrade_of_a_reader_is_a_deadlock)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), LK_ERR_DEADLOCK);
  ck_assert(lk_sync_lock_ok(r));
  ck_assert_uint_eq(lk_sync_lock_count(w), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(r, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  lk_sync_rwlock_free(rw); /* releases the lock */
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
}
END_TEST

START_TEST(downgrade_admits_readers_and_no_writer)
{
  waiter writer;

  begin_rwlock();
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rw, &soon), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &soon), 0);
  uint64_t token = lk_sync_lock_token(w);

  waiter_start(&writer, acquire_and_release, w);
  waiters_inside(here, 1);
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rw, &soon), 0);
  ck_assert(lk_sync_lock_ok(r) && !lk_sync_lock_ok(w));
  ck_assert_uint_eq(lk_sync_lock_token(r), token);
  ck_assert_int_eq(lk_sync_lock_verify(r, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(w), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_acquire(r, &soon), 0); /* reentrant */
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
    ck_assert_uint_eq(count_contenders(), 1);
    ck_assert(lk_sync_lock_ok(i == 0 ? w : r));
    ck_assert_int_eq(lk_sync_lock_release_wait(i == 0 ? w : r, &soon), 0);
    ck_assert_uint_eq(count_contenders(), 0);
  }
  lk_sync_rwlock_free(rw);
}
END_TEST

START_TEST(timed_out_side_leaves_no_node)
{
  begin_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(r, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_acquire(w, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_sync(here, "/", &soon), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  lk_sync_rwlock_free(rw);
}
END_TEST

/* ---- semaphores --------------------------------------------------------- */

static lk_sync_lock *permits_of(int32_t permits, int32_t take)
{
  lk_semaphore_config options = {
      .size = sizeof options, .permits = permits, .take = take};
  char path[128];
  lk_sync_lock *l;

  snprintf(path, sizeof path, "%s-permits", lock_path());
  ck_assert_int_eq(lk_sync_semaphore_new(&l, here, path, NULL, &options), 0);
  return l;
}

static int hold_until_unlocked(void *arg)
{
  void **both = arg;
  int err = lk_sync_lock_acquire(both[0], &soon);

  pthread_mutex_lock(both[1]);
  pthread_mutex_unlock(both[1]);
  return err != 0 ? err : lk_sync_lock_release(both[0]);
}

START_TEST(each_permit_is_held_by_another_thread)
{
  pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;
  lk_sync_lock *l = permits_of(2, 1);
  void *both[] = {l, &stop};
  waiter other;

  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), LK_ERR_DEADLOCK);
  ck_assert_uint_eq(lk_sync_lock_count(l), 1);
  ck_assert_int_eq(try_in_other_thread(l), 0);
  pthread_mutex_lock(&stop);
  waiter_start(&other, hold_until_unlocked, both);
  while (try_in_other_thread(l) != LK_ERR_BUSY)
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
  ck_assert_int_eq(try_in_other_thread(two), LK_ERR_BUSY);
  ck_assert_int_eq(try_in_other_thread(one), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(two, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(two), 0);
  lk_sync_lock_free(one);
  lk_sync_lock_free(two);
}
END_TEST

static lk_stat permit_directory(void)
{
  char path[128];
  lk_stat stat = {0};

  snprintf(path, sizeof path, "%s-permits/leases", lock_path());
  ck_assert_int_eq(lk_sync_exists(here, &stat, path, &soon), 0);
  return stat;
}

/* After three failed tries a lock creates its permit node only when it is first
 * in the queue. Each try uses another contender, but the failures are counted
 * for the lock. */
START_TEST(try_after_three_failures_creates_no_permit_node)
{
  pthread_mutex_t stop = PTHREAD_MUTEX_INITIALIZER;
  lk_sync_lock *l = permits_of(1, 1), *other = permits_of(1, 1);
  void *both[] = {l, &stop};
  waiter first;

  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  waiter_start(&first, hold_until_unlocked, both);
  while (permit_directory().num_children < 2)
    ;
  for (int i = 0; i < 6; i++) {
    int32_t before = permit_directory().cversion;

    ck_assert_int_eq(lk_sync_lock_try(other, &soon), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_sync(here, lock_path(), &soon), 0);
    ck_assert((i < 3) == (permit_directory().cversion > before));
  }
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(waiter_end(&first), 0);
  lk_sync_lock_free(other);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- multi-locks -------------------------------------------------------- */

START_TEST(multilock_acquires_all_its_members)
{
  char other[128];

  snprintf(other, sizeof other, "%s-other", lock_path());
  lk_multilock_member members[] = {
      {.path = other, .side = LK_MULTILOCK_READ},
      {.path = lock_path(), .side = LK_MULTILOCK_MUTEX}};
  lk_sync_lock *l;

  ck_assert_int_eq(lk_sync_multilock_new(&l, here, members, 2, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, lock_path()),
                    lk_sync_lock_token(l));
  ck_assert_uint_ne(lk_sync_multilock_token(l, other), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, "/no"), 0);
  ck_assert_int_eq(lk_sync_lock_try(rival, &soon), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &soon), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, lock_path()), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_release(rival), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  delete_contender_nodes();
  ck_assert_int_eq(lk_sync_lock_verify(l, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(l), LK_ERR_LOST);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- single-node locks -------------------------------------------------- */

START_TEST(a_single_node_is_held_by_one_thread)
{
  char path[128];
  lk_sync_lock *l;

  snprintf(path, sizeof path, "%s-single", lock_path());
  ck_assert_int_eq(lk_sync_single_new(&l, here, path, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(l), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &soon), 0);
  ck_assert_int_eq(try_in_other_thread(l), 0);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- local queues ------------------------------------------------------- */

enum { THREADS = 40 };

static lk_sync_lock *shared;
static unsigned inside;
static uint64_t last_token, last_turn;

static int hold_once(void *arg)
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
  if (count_contenders() > 2) /* its own node, and one that is being deleted */
    err = LK_ERR_TOO_MANY;
  inside--;
  lk_sync_lock_release(shared);
  return err;
}

START_TEST(threads_share_a_contender_node)
{
  lk_sync_lock_config config = {.size = sizeof config, .local_queue = true};
  waiter crowd[THREADS];

  ck_assert_int_eq(lk_sync_lock_new(&shared, here, lock_path(), &config), 0);
  last_token = 0;
  for (int i = 0; i < THREADS; i++)
    waiter_start(&crowd[i], hold_once, NULL);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(waiter_end(&crowd[i]), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &soon), 0);
  lk_sync_lock_free(shared);
}
END_TEST

/* ---- invalid configs ---------------------------------------------------- */

START_TEST(constructors_refuse_invalid_configs)
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

  tcase_add_test(t, readers_share_and_writers_exclude);
  tcase_add_test(t, upgrade_of_a_reader_is_a_deadlock);
  tcase_add_test(t, downgrade_admits_readers_and_no_writer);
  tcase_add_test(t, sides_are_released_in_any_order);
  tcase_add_test(t, timed_out_side_leaves_no_node);
  tcase_add_test(t, each_permit_is_held_by_another_thread);
  tcase_add_test(t, several_permits_are_taken_together);
  tcase_add_test(t, try_after_three_failures_creates_no_permit_node);
  tcase_add_test(t, multilock_acquires_all_its_members);
  tcase_add_test(t, a_single_node_is_held_by_one_thread);
  tcase_add_test(t, threads_share_a_contender_node);
  tcase_add_test(t, constructors_refuse_invalid_configs);
  return t;
}
