/* SPDX-License-Identifier: Apache-2.0 */
#include <ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>

static void on_held(lk_lock *lock, int err, void *client)
{
  if (err != 0) {
    fprintf(stderr, "%s\n", lk_error_text(err));
  } else {
    printf("%s is ours, fencing token %llu\n", lk_lock_path(lock),
           (unsigned long long)lk_lock_token(lock));
    lk_lock_release(lock, NULL, NULL);
  }
  lk_client_close(client, NULL, NULL);
}

int main(int argc, char **argv)
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_ev *ev = NULL;
  lk_client *client = NULL;
  lk_keeper *keeper = NULL;
  lk_lock *lock = NULL;

  if (lk_ev_new(&ev, loop, NULL) == 0 &&
      lk_ev_client_new(&client, ev, &config) == 0 &&
      lk_keeper_new(&keeper, client, NULL) == 0 &&
      lk_lock_new(&lock, keeper, "/locks/nightly", NULL) == 0 &&
      lk_lock_acquire(lock, 10000, on_held, client) == 0)
    ev_run(loop, 0); /* until the client is closed */
  lk_lock_free(lock);
  lk_keeper_free(keeper);
  lk_ev_free(ev); /* and its client */
  return 0;
}
