/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A fair, re-entrant lock, as Curator's InterProcessMutex: the thread that
 * holds it can acquire it again, and releases it as often.
 *
 *     mutex [HOSTS]
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

/* Acquire the lock, which the caller may hold already. */
static int inner(lk_sync_lock *lock)
{
  int err = lk_sync_lock_acquire(lock, &limit);

  if (err != 0)
    return err;
  printf("held %zu times\n", lk_sync_lock_count(lock));
  return lk_sync_lock_release(lock);
}

static int outer(lk_sync_lock *lock)
{
  int err = lk_sync_lock_acquire(lock, &limit);

  if (err != 0)
    return err;
  printf("held, fencing token %llu\n",
         (unsigned long long)lk_sync_lock_token(lock));
  err = inner(lock);
  /* Ask right before acting, since the lease deadline may have passed. */
  if (err == 0)
    printf("%s\n", lk_sync_lock_ok(lock) ? "still held" : "not certain");
  int released = lk_sync_lock_release_wait(lock, &limit);

  return err != 0 ? err : released;
}

static int work(lk_sync_client *client)
{
  lk_sync_lock *lock;
  int err =
      lk_sync_lock_new(&lock, client, "/examples/mutex", NULL, NULL, NULL);

  if (err == 0)
    err = outer(lock);
  if (err == 0)
    printf("released\n");
  lk_sync_lock_free(lock);
  return fail("/examples/mutex", err);
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
