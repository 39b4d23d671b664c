/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Several locks that are held as one, as with Curator's InterProcessMultiLock.
 * No reader sees money that has left one of two accounts and has not arrived in
 * the other. No order of the paths leads to a deadlock.
 *
 *     multilock [HOSTS]
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

#define FROM "/examples/accounts/1"
#define TO   "/examples/accounts/2"

static int transfer(lk_sync_lock *both, lk_sync_lock *one)
{
  int err = lk_sync_lock_acquire(both, &limit);

  if (err != 0)
    return err;
  printf("both held, one token: %s\n", lk_sync_multilock_token(both, FROM) ==
                                               lk_sync_multilock_token(both, TO)
                                           ? "yes"
                                           : "no");
  printf("one of them alone: %s\n",
         lk_error_text(lk_sync_lock_try(one, &limit)));
  return lk_sync_lock_release_wait(both, &limit);
}

static int work(lk_sync_client *client)
{
  const lk_multilock_part accounts[] = {{.path = FROM}, {.path = TO}};
  lk_sync_lock *both = NULL, *one = NULL;
  int err =
      lk_sync_multilock_new(&both, client, accounts, 2, NULL, NULL, NULL, NULL);

  if (err == 0)
    err = lk_sync_lock_new(&one, client, TO, NULL, NULL, NULL);
  if (err == 0)
    err = transfer(both, one);
  if (err == 0)
    printf("released\n");
  lk_sync_lock_free(one);
  lk_sync_lock_free(both);
  return fail("the accounts", err);
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
