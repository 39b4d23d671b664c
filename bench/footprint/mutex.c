/* SPDX-License-Identifier: Apache-2.0 */

/* The smallest program with a lock: acquire a mutex, release it, exit. */

#include <latchkey/latchkey.h>
#include <stdlib.h>

static int exit_code = EXIT_FAILURE;

static void on_held(lk_lock *lock, int err, void *client)
{
  if (err == 0) {
    exit_code = EXIT_SUCCESS;
    lk_lock_release(lock, NULL, NULL);
  }
  lk_client_close(client, NULL, NULL);
}

int main(int argc, char **argv)
{
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_poll *poll = NULL;
  lk_client *client;
  lk_lock *lock = NULL;

  if (lk_poll_new(&poll, NULL) == 0 &&
      lk_poll_client_new(&client, poll, &config) == 0 &&
      lk_lock_new(&lock, client, "/footprint", NULL) == 0 &&
      lk_lock_acquire(lock, 10000, on_held, client) == 0)
    lk_poll_run(poll);
  lk_lock_free(lock);
  lk_poll_free(poll);
  return exit_code;
}
