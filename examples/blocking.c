/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The blocking lock of the tutorials, with nodes /locks/seq-N: ten threads
 * count down a number that only the lock protects. Programs that create such
 * nodes by hand can take part.
 *
 *     blocking [HOSTS]
 */

#include <latchkey/sync.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 10, START = 500 };

static lk_sync_client *client;
static lk_sync_lock *lock; /* each thread has a clone of it */
static int number = START;

static int fail(const char *what, int err)
{
  if (err != 0)
    fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  return err;
}

static void *count_down(void *failed)
{
  static const lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 60000};
  lk_sync_lock *mine;
  int err = fail("no handle", lk_sync_lock_clone(&mine, lock, NULL));

  if (err == 0)
    err = fail("cannot lock", lk_sync_lock_acquire(mine, &limit));
  if (err == 0) {
    printf("%d\n", --number);
    err = fail("cannot release", lk_sync_lock_release(mine));
  }
  lk_sync_lock_free(mine);
  return err == 0 ? NULL : failed;
}

static int run(void)
{
  pthread_t threads[THREADS];
  int begun = 0, failed = 0;
  void *result;

  while (begun < THREADS &&
         pthread_create(&threads[begun], NULL, count_down, &failed) == 0)
    begun++;
  failed = THREADS - begun;
  for (int i = 0; i < begun; i++) {
    pthread_join(threads[i], &result);
    failed += result != NULL;
  }
  return failed;
}

int main(int argc, char **argv)
{
  lk_client_config how = {.size = sizeof how,
                          .hosts = argc > 1 ? argv[1] : NULL};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  lk_lock_config native = {.size = sizeof native,
                           .layout = LK_LAYOUT_NATIVE, /* no UUID */
                           .prefix = "seq-"};
  int failed = 1;

  if (fail("cannot begin", lk_sync_client_new(&client, &config)) != 0)
    return 1;
  if (fail("no lock",
           lk_sync_lock_new(&lock, client, "/locks", &native, NULL, NULL)) == 0)
    failed = run();
  lk_sync_lock_free(lock);
  fail("cannot close", lk_sync_client_close(client));
  lk_sync_client_free(client);
  return failed != 0;
}
