/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The exclusive lock of the tutorials, a single node: the client that creates
 * /tutorial/exclusive_lock/lock holds, and all others wait until the node is
 * deleted. Ten threads count down a number that only the lock protects, in any
 * order, since there is no queue. Half of them watch the node, the others poll.
 *
 *     exclusive [HOSTS]
 */

#include <latchkey/sync.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 10, START = 500, POLL_MS = 20 };

static lk_sync_client *client;
/* Two ways to wait for the same node. Each thread has a clone of one. */
static lk_sync_lock *locks[2];
static int number = START;

static int fail(const char *what, int err)
{
  if (err != 0)
    fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  return err;
}

/* Returns NULL after a successful countdown. */
static void *count_down(void *lock)
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
  return err == 0 ? NULL : lock;
}

static int run(void)
{
  pthread_t threads[THREADS];
  int begun = 0, failed = 0;
  void *result;

  while (begun < THREADS && pthread_create(&threads[begun], NULL, count_down,
                                           locks[begun % 2]) == 0)
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
  static const char path[] = "/tutorial/exclusive_lock/lock";
  lk_client_config how = {.size = sizeof how,
                          .hosts = argc > 1 ? argv[1] : NULL};
  lk_sync_config config = {.size = sizeof config, .client = &how};
  lk_single_config polls = {.size = sizeof polls, .poll_ms = POLL_MS};
  int failed = 1;

  if (fail("cannot begin", lk_sync_client_new(&client, &config)) != 0)
    return 1;
  if (fail("no lock", lk_sync_single_new(&locks[0], client, path, NULL, NULL,
                                         NULL, NULL)) == 0 &&
      fail("no lock", lk_sync_single_new(&locks[1], client, path, NULL, &polls,
                                         NULL, NULL)) == 0)
    failed = run();
  lk_sync_lock_free(locks[0]);
  lk_sync_lock_free(locks[1]);
  fail("cannot close", lk_sync_client_close(client));
  lk_sync_client_free(client);
  return failed != 0;
}
