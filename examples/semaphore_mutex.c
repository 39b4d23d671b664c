/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A lock that is not re-entrant, as Curator's InterProcessSemaphoreMutex: a
 * semaphore with one permit.
 *
 *     semaphore_mutex [HOSTS]
 */

#include <latchkey/sync.h>
#include <stdio.h>

static const lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 10000};

static int fail(const char *what, int err)
{
  if (err != 0)
    fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  return err;
}

static int twice(lk_sync_lock *lock)
{
  int err = lk_sync_lock_acquire(lock, &limit);

  if (err != 0)
    return err;
  printf("held\n");
  printf("again: %s\n", lk_error_text(lk_sync_lock_acquire(lock, &limit)));
  return lk_sync_lock_release_wait(lock, &limit);
}

static int work(lk_sync_client *client)
{
  lk_semaphore_config one = {.size = sizeof one, .permits = 1};
  lk_sync_lock *lock;
  int err = lk_sync_semaphore_new(&lock, client, "/examples/one", NULL, &one,
                                  NULL, NULL);

  if (err == 0)
    err = twice(lock);
  if (err == 0)
    printf("released\n");
  lk_sync_lock_free(lock);
  return fail("/examples/one", err);
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
