/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A read-write lock, as Curator's InterProcessReadWriteLock: a writer
 * downgrades and continues to read, and no other writer is granted in between.
 *
 *     rwlock [HOSTS]
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

static int write_and_read(lk_sync_rwlock *rw)
{
  lk_sync_lock *read = lk_sync_rwlock_read_side(rw);
  lk_sync_lock *write = lk_sync_rwlock_write_side(rw);
  int err = lk_sync_lock_acquire(write, &limit);

  if (err != 0)
    return err;
  printf("writing\n");
  err = lk_sync_rwlock_downgrade(rw, &limit);
  if (err != 0) {
    (void)lk_sync_lock_release(write);
    return err;
  }
  printf("reading\n");
  printf("writing again: %s\n",
         lk_error_text(lk_sync_lock_acquire(write, &limit)));
  return lk_sync_lock_release_wait(read, &limit);
}

static int work(lk_sync_client *client)
{
  lk_sync_rwlock *rw;
  int err =
      lk_sync_rwlock_new(&rw, client, "/examples/rwlock", NULL, NULL, NULL);

  if (err == 0)
    err = write_and_read(rw);
  if (err == 0)
    printf("released\n");
  lk_sync_rwlock_free(rw);
  return fail("/examples/rwlock", err);
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
