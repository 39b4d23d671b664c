/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thousand threads, one client, one lock: all start at the same time, and
 * each acquires the lock once, with a handle of its own, and sells one piece of
 * an inventory in ZooKeeper.
 *
 *     threads [HOSTS [THREADS]]
 */

#include <latchkey/sync.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NODE "/inventory"
#define LOCK "/locks/inventory"

static lk_sync_client *client;
static lk_sync_lock *lock;      /* each thread has a clone of it */
static pthread_barrier_t start; /* all threads wait for it, and main() */
static const lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 120000};

static int fail(const char *what, int err)
{
  if (err != 0)
    fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  return err;
}

/* The lock is held: no other thread writes between the read and the write. */
static int sell_one(const lk_sync_lock *mine)
{
  lk_sync_result *r;
  char text[24];
  int err = lk_sync_get(client, &r, NODE, &limit);

  if (err != 0)
    return fail("cannot read the inventory", err);
  snprintf(text, sizeof text, "%ld", strtol(r->data.at, NULL, 10) - 1);
  lk_sync_result_free(r);
  if (!lk_sync_lock_ok(mine))
    return fail("the lock is gone", LK_ERR_UNSURE);
  return fail("cannot write the inventory",
              lk_sync_set(client, NULL, NODE, lk_text(text), -1, &limit));
}

static void *customer(void *failed)
{
  lk_sync_lock *mine;
  int err = fail("no lock", lk_sync_lock_clone(&mine, lock, NULL));

  pthread_barrier_wait(&start);
  if (err == 0)
    err = fail("cannot lock", lk_sync_lock_acquire(mine, &limit));
  if (err == 0) {
    err = sell_one(mine);
    if (fail("cannot release", lk_sync_lock_release(mine)) != 0)
      err = LK_ERR_LOST;
  }
  lk_sync_lock_free(mine);
  return err == 0 ? NULL : failed;
}

/* How many of `count` threads failed. `elapsed_ms`: from the common start to
 * the end of the last one. */
static size_t run(size_t count, int64_t *elapsed_ms)
{
  pthread_t *threads = calloc(count, sizeof *threads);
  size_t failed = count;
  void *result;

  if (threads == NULL ||
      pthread_barrier_init(&start, NULL, (unsigned)count + 1) != 0)
    exit(fail("cannot start threads", LK_ERR_NO_MEMORY));
  for (size_t i = 0; i < count; i++) {
    if (pthread_create(&threads[i], NULL, customer, &failed) != 0)
      exit(fail("cannot start a thread", LK_ERR_SYSTEM)); /* some wait */
  }
  pthread_barrier_wait(&start);
  int64_t began = lk_sync_client_clock(client);

  for (size_t i = 0; i < count; i++) {
    pthread_join(threads[i], &result);
    failed -= result == NULL;
  }
  *elapsed_ms = lk_sync_client_clock(client) - began;
  pthread_barrier_destroy(&start);
  free(threads);
  return failed;
}

static int report(size_t count, size_t failed, int64_t elapsed_ms)
{
  lk_sync_result *r;
  int err = fail("cannot read", lk_sync_get(client, &r, NODE, &limit));

  if (err == 0)
    printf("%zu threads, %zu failed, %s of %zu pieces left, %d ms\n", count,
           failed, (const char *)r->data.at, count, (int)elapsed_ms);
  lk_sync_result_free(r);
  return err != 0 || failed > 0;
}

int main(int argc, char **argv)
{
  lk_client_config how = {.size = sizeof how,
                          .hosts = argc > 1 ? argv[1] : NULL};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
  char text[24];
  int failed = 1;

  snprintf(text, sizeof text, "%zu", count);
  if (fail("cannot begin", lk_sync_client_new(&client, &config)) != 0)
    return 1;
  if (fail("no lock",
           lk_sync_lock_new(&lock, client, LOCK, NULL, NULL, NULL)) == 0 &&
      fail("cannot create " NODE,
           lk_sync_create(client, NULL, NODE, lk_text(text), NULL,
                          LK_PERSISTENT, &limit)) == 0) {
    int64_t elapsed_ms;
    size_t not_sold = run(count, &elapsed_ms);

    failed = report(count, not_sold, elapsed_ms);
    fail("cannot delete", lk_sync_delete(client, NODE, -1, &limit));
  }
  lk_sync_lock_free(lock);
  fail("cannot close", lk_sync_client_close(client));
  lk_sync_client_free(client);
  return failed;
}
