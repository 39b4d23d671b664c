/* SPDX-License-Identifier: Apache-2.0 */
#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>

static int exit_code = EXIT_FAILURE;

static void on_held(lk_lock *lock, int err, void *client)
{
  const char *cause;

  if (err == 0) {
    printf("holding %s, fencing token %llu\n", lk_lock_path(lock),
           (unsigned long long)lk_lock_token(lock));
    exit_code = EXIT_SUCCESS;
    lk_lock_release(lock, NULL, NULL);
  } else {
    lk_client_last_error(client, &cause); /* "" if there was none */
    fprintf(stderr, "%s: %s. %s\n", lk_lock_path(lock), lk_error_text(err),
            cause);
  }
  lk_client_close(client, NULL, NULL); /* sends outstanding requests first */
}

int main(int argc, char **argv)
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  int64_t timeout_ms = argc > 2 ? atoi(argv[2]) : 10000;
  lk_ev *ev = NULL;
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  int err;

  if ((err = lk_ev_new(&ev, loop, NULL)) == 0 &&
      (err = lk_ev_client_new(&client, ev, &config)) == 0 &&
      (err = lk_lock_new(&lock, client, "/locks/nightly", NULL)) == 0 &&
      (err = lk_lock_acquire(lock, timeout_ms, on_held, client)) == 0)
    ev_run(loop, 0); /* until the client is closed */
  else
    fprintf(stderr, "%s: %s\n", config.hosts, lk_error_text(err));
  lk_lock_free(lock);
  lk_ev_free(ev); /* frees the client as well */
  return exit_code;
}
