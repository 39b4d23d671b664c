/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A semaphore, as Curator's InterProcessSemaphoreV2: ten threads, of which at
 * most three work at a time.
 *
 *     semaphore [HOSTS]
 */

#include <latchkey/sync.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 10000};

static int fail(const char *what, int err)
{
  if (err != 0)
    fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  return err;
}

enum { THREADS = 10, PERMITS = 3 };

static lk_sync_lock *permit; /* each thread has a clone of it */
static atomic_int working, most, done;

static void *worker(void *arg)
{
  lk_sync_lock *mine;

  if (fail("no handle", lk_sync_lock_clone(&mine, permit, NULL)) != 0)
    return arg;
  if (fail("no permit", lk_sync_lock_acquire(mine, &limit)) != 0) {
    lk_sync_lock_free(mine);
    return arg;
  }
  int now = atomic_fetch_add(&working, 1) + 1;

  for (int seen = most; now > seen;)
    if (atomic_compare_exchange_weak(&most, &seen, now))
      break;
  done++;
  working--;
  fail("cannot release", lk_sync_lock_release(mine));
  lk_sync_lock_free(mine);
  return arg;
}

static void run(void)
{
  pthread_t threads[THREADS];
  int begun = 0;

  while (begun < THREADS &&
         pthread_create(&threads[begun], NULL, worker, NULL) == 0)
    begun++;
  while (begun > 0)
    pthread_join(threads[--begun], NULL);
}

static int work(lk_sync_client *client)
{
  lk_semaphore_config config = {.size = sizeof config, .permits = PERMITS};
  int err = lk_sync_semaphore_new(&permit, client, "/examples/semaphore", NULL,
                                  &config, NULL, NULL);

  if (err != 0)
    return fail("/examples/semaphore", err);
  run();
  printf("%d threads have worked, %s\n", done,
         most <= PERMITS ? "never more than 3 at a time"
                         : "too many at a time");
  lk_sync_lock_free(permit);
  return done != THREADS || most > PERMITS;
}

int main(int argc, char **argv)
{
  lk_client_config how = {.size = sizeof how,
                          .hosts = argc > 1 ? argv[1] : NULL};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  lk_sync_client *client;
  int err = fail("no client", lk_sync_client_new(&client, &config));

  if (err != 0)
    return 1;
  err = work(client);
  fail("cannot close", lk_sync_client_close(client));
  lk_sync_client_free(client);
  return err != 0;
}
