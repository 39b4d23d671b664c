/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking interface with many threads at once. */

#include "live/client/sync_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 100, ROUNDS = 10 };

static char counter[64]; /* the path of a node whose data is a number */
static int holders;      /* of `lock` and `rival` together */
static atomic_uint guarded_count; /* number of guarded writes that succeeded */

static void make_counter(void)
{
  lk_sync_result *r;

  ck_assert_int_eq(lk_sync_create(there, &r, "/t-", lk_text("0"), NULL,
                                  LK_SEQUENTIAL, &ten_seconds),
                   0);
  snprintf(counter, sizeof counter, "%s", r->path);
  lk_sync_result_free(r);
}

static long read_counter(lk_sync_client *c)
{
  lk_sync_result *r;
  long n = -1;

  if (lk_sync_get(c, &r, counter, &ten_seconds) == 0)
    n = strtol(r->data.at, NULL, 10);
  lk_sync_result_free(r);
  return n;
}

/* Read the counter and write the next number. If two threads did this at the
 * same time, an increment would be lost. */
static int add_one(lk_sync_client *c)
{
  char text[24];

  snprintf(text, sizeof text, "%ld", read_counter(c) + 1);
  return lk_sync_set(c, NULL, counter, lk_text(text), -1, &ten_seconds);
}

/* As add_one(), but the write fails unless `l` is held. */
static int add_one_guarded(lk_sync_client *c, lk_sync_lock *l)
{
  char text[24];

  snprintf(text, sizeof text, "%ld", read_counter(c) + 1);
  lk_op op = lk_op_set(counter, lk_text(text), -1);

  return lk_sync_lock_guarded_multi(l, NULL, &op, 1, &ten_seconds);
}

/* ---- requests ------------------------------------------------------------ */

/* Each thread creates, changes and deletes its own node. Its calls with a short
 * timeout may succeed or fail. */
static int make_requests(void *thread_number)
{
  unsigned n = (unsigned)(uintptr_t)thread_number;
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 1 + n % 7};
  lk_sync_lock *l = clone_of(lock);
  char path[128];
  int err = 0;

  snprintf(path, sizeof path, "%s/%u", counter, n);
  for (int i = 0; i < ROUNDS && err == 0; i++) {
    lk_sync_result *r;

    err = lk_sync_create(here, &r, path, lk_text("x"), NULL, LK_EPHEMERAL,
                         &ten_seconds);
    lk_sync_result_free(r);
    if (err == 0)
      err = lk_sync_set(here, NULL, path, lk_text("y"), 0, &ten_seconds);
    (void)lk_sync_get_children(here, &r, counter, &brief);
    lk_sync_result_free(r);
    (void)lk_sync_lock_acquire(l, &brief);
    (void)lk_sync_lock_release(l);
    if (err == 0)
      err = lk_sync_delete(here, path, 1, &ten_seconds);
  }
  lk_sync_lock_free(l);
  return err;
}

START_TEST(hundred_threads_make_requests)
{
  waiter w[THREADS];

  make_counter();
  for (size_t i = 0; i < THREADS; i++)
    waiter_start(&w[i], make_requests, (void *)(uintptr_t)i);
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(waiter_end(&w[i]), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &ten_seconds), 0);
  ck_assert_int_eq(lk_sync_server_sync(here, "/", &ten_seconds), 0);
  ck_assert_uint_eq(count_contenders(), 1);
}
END_TEST

/* ---- the lock ------------------------------------------------------------ */

/* Half of the threads use one client, and half the other one. Half of the
 * writes are guarded. */
static int count_up(void *thread_number)
{
  bool is_even = (uintptr_t)thread_number % 2 == 0;
  lk_sync_client *c = is_even ? here : there;
  lk_sync_lock *l = clone_of(is_even ? lock : rival);
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 120000};
  int err = 0;

  for (int i = 0; i < ROUNDS / 2 && err == 0; i++) {
    err = lk_sync_lock_acquire(l, &call);
    if (err != 0)
      break;
    if (++holders != 1 || !lk_sync_lock_ok(l))
      err = LK_ERR_BUSY;
    if (err == 0)
      err = i % 2 == 0 ? add_one_guarded(c, l) : add_one(c);
    holders--;
    lk_sync_lock_release(l);
  }
  lk_sync_lock_free(l);
  return err;
}

START_TEST(threads_of_two_clients_lose_no_increment)
{
  waiter w[THREADS];

  make_counter();
  for (size_t i = 0; i < THREADS; i++)
    waiter_start(&w[i], count_up, (void *)(uintptr_t)i);
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(waiter_end(&w[i]), 0);
  ck_assert_int_eq(lk_sync_server_sync(here, counter, &ten_seconds), 0);
  ck_assert_int_eq(read_counter(here), THREADS * (ROUNDS / 2));
}
END_TEST

/* Another thread deletes contender nodes meanwhile, so the lock may be lost. */
static int count_guarded(void *arg)
{
  /* The error if the own node was deleted three times during the wait. */
  enum { WAITING_NODE_DELETED = LK_ERR_NO_NODE };

  lk_sync_lock *l = clone_of(lock);
  int failure = 0;

  (void)arg;
  for (int i = 0; i < ROUNDS && failure == 0; i++) {
    int err = lk_sync_lock_acquire(l, &ten_seconds);

    if (err == 0)
      err = add_one_guarded(here, l);
    if (err == 0)
      guarded_count++;
    else if (err != LK_ERR_LOST && err != WAITING_NODE_DELETED)
      failure = err;
    lk_sync_lock_release(l);
  }
  lk_sync_lock_free(l);
  return failure;
}

static int delete_some_contender_nodes(void *arg)
{
  (void)arg;
  for (int i = 0; i < 20; i++) {
    lk_sync_result *r;
    char node[256];

    usleep(5000);
    if (lk_sync_get_children(there, &r, lk_sync_lock_path(lock),
                             &ten_seconds) == 0 &&
        r->count > 0) {
      snprintf(node, sizeof node, "%s/%s", lk_sync_lock_path(lock),
               (const char *)r->names[0].at);
      (void)lk_sync_delete(there, node, -1, &ten_seconds);
    }
    lk_sync_result_free(r);
  }
  return 0;
}

START_TEST(guarded_increments_are_not_lost_with_the_lock)
{
  waiter w[10], deleter;

  make_counter();
  waiter_start(&deleter, delete_some_contender_nodes, NULL);
  for (size_t i = 0; i < 10; i++)
    waiter_start(&w[i], count_guarded, NULL);
  for (size_t i = 0; i < 10; i++)
    ck_assert_int_eq(waiter_end(&w[i]), 0);
  ck_assert_int_eq(waiter_end(&deleter), 0);
  ck_assert_int_eq(read_counter(here), (long)guarded_count);
}
END_TEST

/* ---- close ------------------------------------------------------------- */

static int work_until_closed(void *arg)
{
  lk_sync_lock *l = clone_of(lock);
  int err = 0;

  (void)arg;
  while (err == 0) {
    err = lk_sync_lock_acquire(l, NULL);
    if (err == 0)
      err = lk_sync_server_sync(here, counter, NULL);
    lk_sync_lock_release(l);
  }
  lk_sync_lock_free(l);
  return err;
}

START_TEST(closing_ends_threads_in_every_state)
{
  waiter w[THREADS];

  make_counter();
  for (size_t i = 0; i < THREADS; i++)
    waiter_start(&w[i], work_until_closed, NULL);
  usleep((unsigned)(_i * 20000)); /* another moment in each turn */
  int err = lk_sync_client_close(here);

  ck_assert_int_eq(err, 0);
  for (size_t i = 0; i < THREADS; i++) {
    err = waiter_end(&w[i]);
    ck_assert(err == LK_ERR_CLOSED || err == LK_ERR_LOST);
  }
  ck_assert_uint_eq(count_contenders(), 0);
}
END_TEST

TCase *thread_tests(void)
{
  TCase *t = tcase_create("threads");

  tcase_add_test(t, hundred_threads_make_requests);
  tcase_add_test(t, threads_of_two_clients_lose_no_increment);
  tcase_add_test(t, guarded_increments_are_not_lost_with_the_lock);
  tcase_add_loop_test(t, closing_ends_threads_in_every_state, 0, 5);
  return t;
}
