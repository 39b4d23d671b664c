/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* All kinds of locks except the mutex, in the blocking interface. */

#include "live/client/sync_world.h"

#include <stdio.h>

static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 200};

static int try_and_release(lk_sync_lock *l)
{
  int err = lk_sync_lock_try(l, &ten_seconds);

  if (err == 0)
    err = lk_sync_lock_release_wait(l, &ten_seconds);
  return err;
}

/* The result of try_and_release() with another handle. */
static int try_clone_of(lk_sync_lock *l)
{
  lk_sync_lock *clone = clone_of(l);
  int err = try_and_release(clone);

  lk_sync_lock_free(clone);
  return err;
}

static int acquire_and_release(void *l)
{
  int err = lk_sync_lock_acquire(l, &ten_seconds);

  return err != 0 ? err : lk_sync_lock_release_wait(l, &ten_seconds);
}

static const char *lock_path(void)
{
  return lk_sync_lock_path(lock);
}

/* ---- read-write locks --------------------------------------------------- */

/* The read-write lock of the running test, and its sides; another handle of it,
 * and its sides. */
static lk_sync_rwlock *rwlock, *other_rwlock;
static lk_sync_lock *read_side, *write_side;
static lk_sync_lock *other_read_side, *other_write_side;

static void create_rwlock(void)
{
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rwlock, here, lock_path(), NULL, NULL, NULL), 0);
  read_side = lk_sync_rwlock_read_side(rwlock);
  write_side = lk_sync_rwlock_write_side(rwlock);
  ck_assert_int_eq(lk_sync_rwlock_clone(&other_rwlock, rwlock, NULL), 0);
  other_read_side = lk_sync_rwlock_read_side(other_rwlock);
  other_write_side = lk_sync_rwlock_write_side(other_rwlock);
}

static void free_rwlock(void)
{
  lk_sync_rwlock_free(rwlock);
  lk_sync_rwlock_free(other_rwlock);
}

START_TEST(readers_share_and_writers_exclude)
{
  create_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(read_side, &ten_seconds), 0);
  ck_assert_int_eq(try_and_release(other_read_side), 0);
  ck_assert_int_eq(try_and_release(other_write_side), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), LK_ERR_BUSY);
  ck_assert(lk_sync_lock_ok(read_side) && !lk_sync_lock_ok(write_side));
  ck_assert_int_eq(lk_sync_lock_release_wait(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &ten_seconds), 0);
  ck_assert_int_eq(try_and_release(other_read_side), LK_ERR_BUSY);
  ck_assert_int_eq(try_and_release(other_write_side), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(write_side, &ten_seconds), 0);
  ck_assert_int_eq(try_and_release(other_write_side), 0);
  free_rwlock();
}
END_TEST

START_TEST(upgrade_of_a_reader_is_a_deadlock)
{
  create_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &ten_seconds),
                   LK_ERR_DEADLOCK);
  ck_assert(lk_sync_lock_ok(read_side));
  ck_assert_uint_eq(lk_sync_lock_count(write_side), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &ten_seconds), 0);
  free_rwlock(); /* releases the lock */
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
}
END_TEST

START_TEST(downgrade_admits_readers_and_no_writer)
{
  waiter writer;

  create_rwlock();
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rwlock, &ten_seconds),
                   LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &ten_seconds), 0);
  uint64_t token = lk_sync_lock_token(write_side);

  waiter_start(&writer, acquire_and_release, other_write_side);
  waiters_inside(here, 1);
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rwlock, &ten_seconds), 0);
  ck_assert(lk_sync_lock_ok(read_side) && !lk_sync_lock_ok(write_side));
  ck_assert_uint_eq(lk_sync_lock_token(read_side), token);
  ck_assert_int_eq(lk_sync_lock_verify(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), LK_ERR_BUSY);
  /* A side is reentrant. */
  ck_assert_int_eq(lk_sync_lock_acquire(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_release(read_side), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(read_side, &ten_seconds), 0);
  ck_assert_int_eq(waiter_end(&writer), 0);
  free_rwlock();
}
END_TEST

static void acquire_both_and_release(lk_sync_lock *first, lk_sync_lock *second)
{
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(read_side, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(first, &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  ck_assert(lk_sync_lock_ok(second));
  ck_assert_int_eq(lk_sync_lock_release_wait(second, &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 0);
}

START_TEST(sides_are_released_in_any_order)
{
  create_rwlock();
  acquire_both_and_release(read_side, write_side);
  acquire_both_and_release(write_side, read_side);
  free_rwlock();
}
END_TEST

START_TEST(timed_out_side_leaves_no_node)
{
  create_rwlock();
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(read_side, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_acquire(write_side, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_server_sync(here, "/", &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 1);
  free_rwlock();
}
END_TEST

/* ---- semaphores --------------------------------------------------------- */

static lk_sync_lock *new_semaphore(lk_semaphore_config options)
{
  char path[128];
  lk_sync_lock *l;

  options.size = sizeof options;
  snprintf(path, sizeof path, "%s-permits", lock_path());
  ck_assert_int_eq(
      lk_sync_semaphore_new(&l, here, path, NULL, &options, NULL, NULL), 0);
  return l;
}

START_TEST(handle_holds_its_permits_once)
{
  lk_sync_lock *l =
      new_semaphore((lk_semaphore_config){.permits = 2, .take = 1});
  lk_sync_lock *other = clone_of(l);

  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), LK_ERR_DEADLOCK);
  ck_assert_uint_eq(lk_sync_lock_count(l), 1);
  ck_assert_int_eq(lk_sync_lock_acquire(other, &ten_seconds), 0);
  ck_assert_int_eq(try_clone_of(l), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  lk_sync_lock_free(other);
  lk_sync_lock_free(l);
}
END_TEST

START_TEST(several_permits_are_taken_together)
{
  /* Two configurations of one semaphore with three permits. */
  lk_sync_lock *two =
      new_semaphore((lk_semaphore_config){.permits = 3, .take = 2});
  lk_sync_lock *one =
      new_semaphore((lk_semaphore_config){.permits = 3, .take = 1});

  ck_assert_int_eq(lk_sync_lock_acquire(two, &ten_seconds), 0);
  ck_assert_int_eq(try_clone_of(two), LK_ERR_BUSY);
  ck_assert_int_eq(try_clone_of(one), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(two, &ten_seconds), 0);
  ck_assert_int_eq(try_clone_of(two), 0);
  lk_sync_lock_free(one);
  lk_sync_lock_free(two);
}
END_TEST

static lk_stat stat_of_permit_directory(void)
{
  char path[128];
  lk_stat stat = {0};

  snprintf(path, sizeof path, "%s-permits/leases", lock_path());
  ck_assert_int_eq(lk_sync_exists(here, &stat, path, &ten_seconds), 0);
  return stat;
}

/* After three failed tries a handle creates its permit node only when it is
 * first in the queue. */
START_TEST(try_after_three_failures_creates_no_permit_node)
{
  const lk_semaphore_config one_permit = {.permits = 1, .take = 1};
  lk_sync_lock *l = new_semaphore(one_permit);
  lk_sync_lock *other = new_semaphore(one_permit);
  lk_sync_lock *first_in_queue = clone_of(l);
  waiter w;

  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  waiter_start(&w, acquire_and_release, first_in_queue);
  while (stat_of_permit_directory().num_children < 2)
    ; /* until `first_in_queue` has created its permit node */
  for (int i = 0; i < 6; i++) {
    int32_t before = stat_of_permit_directory().cversion;

    ck_assert_int_eq(lk_sync_lock_try(other, &ten_seconds), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_server_sync(here, lock_path(), &ten_seconds), 0);
    const bool created_permit_node =
        stat_of_permit_directory().cversion > before;

    ck_assert(created_permit_node == (i < 3));
  }
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(waiter_end(&w), 0);
  lk_sync_lock_free(first_in_queue);
  lk_sync_lock_free(other);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- multi-locks -------------------------------------------------------- */

START_TEST(multilock_acquires_all_its_members)
{
  char other[128];

  snprintf(other, sizeof other, "%s-other", lock_path());
  lk_multilock_part members[] = {
      {.path = other, .side = LK_MULTILOCK_READ},
      {.path = lock_path(), .side = LK_MULTILOCK_MUTEX}};
  lk_sync_lock *l;

  ck_assert_int_eq(
      lk_sync_multilock_new(&l, here, members, 2, NULL, NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, lock_path()),
                    lk_sync_lock_token(l));
  ck_assert_uint_ne(lk_sync_multilock_token(l, other), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, "/no-member"), 0);
  ck_assert_int_eq(lk_sync_lock_try(rival, &ten_seconds), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &ten_seconds), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(l, lock_path()), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(rival, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &brief), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_release(rival), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  delete_contender_nodes();
  ck_assert_int_eq(lk_sync_lock_verify(l, &ten_seconds), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(l), LK_ERR_LOST);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- single-node locks -------------------------------------------------- */

START_TEST(single_node_lock_is_reentrant)
{
  char path[128];
  lk_sync_lock *l;

  snprintf(path, sizeof path, "%s-single", lock_path());
  ck_assert_int_eq(lk_sync_single_new(&l, here, path, NULL, NULL, NULL, NULL),
                   0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(l, &ten_seconds), 0);
  ck_assert_int_eq(try_clone_of(l), LK_ERR_BUSY);
  ck_assert_int_eq(lk_sync_lock_release(l), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(l, &ten_seconds), 0);
  ck_assert_int_eq(try_clone_of(l), 0);
  lk_sync_lock_free(l);
}
END_TEST

/* ---- invalid configs ---------------------------------------------------- */

START_TEST(constructors_refuse_invalid_configs)
{
  lk_semaphore_config no_permits = {.size = sizeof no_permits};
  lk_lock_config without_sides = {.size = sizeof without_sides,
                                  .layout = LK_LAYOUT_LATCH};
  lk_lock_config reserved_data = {.size = sizeof reserved_data,
                                  .data = lk_text(LK_REVOKE_MESSAGE)};
  lk_multilock_part same_path[] = {{"/a", LK_MULTILOCK_READ},
                                   {"/a", LK_MULTILOCK_WRITE}};
  lk_sync_rwlock *refused;
  lk_sync_lock *l;

  ck_assert_int_eq(lk_sync_lock_new(&l, here, "/a", &reserved_data, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(
      lk_sync_semaphore_new(&l, here, "/a", NULL, &no_permits, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_sync_semaphore_new(&l, here, "/a", NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_sync_multilock_new(&l, here, same_path, 2, NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_sync_multilock_new(&l, here, same_path, 0, NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&refused, here, "/a", &without_sides, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(refused);
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
  tcase_add_test(t, handle_holds_its_permits_once);
  tcase_add_test(t, several_permits_are_taken_together);
  tcase_add_test(t, try_after_three_failures_creates_no_permit_node);
  tcase_add_test(t, multilock_acquires_all_its_members);
  tcase_add_test(t, single_node_lock_is_reentrant);
  tcase_add_test(t, constructors_refuse_invalid_configs);
  return t;
}
