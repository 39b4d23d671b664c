/* SPDX-License-Identifier: Apache-2.0 */
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
  lk_client_config servers = {.size = sizeof(servers),
                              .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_sync_config config = {.size = sizeof(config), .client = &servers};
  lk_sync_call options = {.size = sizeof(options),
                          .timeout_ms = argc > 2 ? atoi(argv[2]) : 10000};
  const char *path = "/locks/nightly";
  lk_sync_client *client = NULL;
  lk_sync_lock *lock = NULL;
  char cause[512] = "";
  int err;

  if ((err = lk_sync_client_new(&client, &config)) == 0 &&
      (err = lk_sync_lock_new(&lock, client, path, NULL, NULL, NULL)) == 0 &&
      (err = lk_sync_lock_acquire(lock, &options)) == 0) {
    printf("holding %s, fencing token %llu\n", path,
           (unsigned long long)lk_sync_lock_token(lock));
    err = lk_sync_lock_release(lock);
  }
  /* The functions below accept NULL. */
  if (err != 0) {
    lk_sync_client_last_error(client, cause, sizeof(cause));
    fprintf(stderr, "%s: %s. %s\n", path, lk_error_text(err), cause);
  }
  lk_sync_lock_free(lock);
  lk_sync_client_close(client);
  lk_sync_client_free(client);
  return err != 0;
}
