/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The constructors of the blocking interface: after wrong arguments and each
 * failing allocation the result is NULL and nothing is kept.
 */

#include <latchkey/sync.h>

#include "unit/api/arguments.h"
#include "unit/api/constructors.h"

#include <pthread.h>

static failing_mem memory;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Allocates from `memory` on any thread. */
static void *resize(void *arg, void *p, size_t size)
{
  (void)arg;
  pthread_mutex_lock(&mutex);
  void *got = memory.mem.resize(memory.mem.arg, p, size);

  pthread_mutex_unlock(&mutex);
  return got;
}

static const lk_mem shared_mem = {resize, NULL};
static const lk_mem *const test_mem = &shared_mem;
static lk_sync_client *test_client;
static lk_sync_lock *test_lock;
static lk_sync_rwlock *test_rwlock;

#include "tests/unit/sync/constructors_from_headers.h"

/* More allocations than any constructor makes. */
enum { MOST_ALLOCATIONS = 60 };

/* Let the next `n` allocations of all threads succeed, and then one fail. */
static void fail_after(size_t n)
{
  pthread_mutex_lock(&mutex);
  memory.fail_at = n == 0 ? 0 : memory.count + n;
  pthread_mutex_unlock(&mutex);
}

/* The client's thread allocates, too. If its allocation is the one that fails,
   the constructor succeeds. */
static void expect_null_without_memory(const constructor *k)
{
  unsigned made = 0;

  for (size_t n = 1; n <= MOST_ALLOCATIONS; n++) {
    void *out = pointer_before_call();

    fail_after(n);
    int err = k->make(&out, NO_MISTAKE);

    fail_after(0);
    ck_assert_msg(err == 0 || err == LK_ERR_NO_MEMORY, "%s: error %d", k->name,
                  err);
    ck_assert_msg((out == NULL) == (err != 0), "%s left a pointer", k->name);
    if (err == 0) {
      k->destroy(out);
      made++;
    }
  }
  ck_assert_msg(made > 0 && made < MOST_ALLOCATIONS, "%s was made %u times",
                k->name, made);
}

START_TEST(failed_constructors_return_null)
{
  void *made = NULL;

  failing_mem_init(&memory);
  ck_assert_int_eq(make_lk_sync_client_new(&made, NO_MISTAKE), 0);
  test_client = made;
  ck_assert_int_eq(
      lk_sync_lock_new(&test_lock, test_client, "/l", NULL, NULL, NULL), 0);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&test_rwlock, test_client, "/r", NULL, NULL, NULL), 0);
  for (size_t i = 0; i < sizeof constructors / sizeof constructors[0]; i++) {
    expect_refusals(&constructors[i]);
    expect_null_without_memory(&constructors[i]);
  }
  lk_sync_rwlock_free(test_rwlock);
  lk_sync_lock_free(test_lock);
  lk_sync_client_free(test_client);
  ck_assert_uint_eq(memory.live, 0);
}
END_TEST

SUITE("constructors", failed_constructors_return_null)
