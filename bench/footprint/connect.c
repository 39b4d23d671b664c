/* SPDX-License-Identifier: Apache-2.0 */

/* The smallest program with a session: connect, read a node, exit. */

#include <latchkey/latchkey.h>
#include <stdlib.h>

static int exit_code = EXIT_FAILURE;

static void on_read(lk_client *client, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)data;
  (void)stat;
  (void)arg;
  if (err == 0)
    exit_code = EXIT_SUCCESS;
  lk_client_close(client, NULL, NULL);
}

int main(int argc, char **argv)
{
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_poll *poll = NULL;
  lk_client *client;

  if (lk_poll_new(&poll, NULL) == 0 &&
      lk_poll_client_new(&client, poll, &config) == 0 &&
      lk_get(client, "/", NULL, on_read, NULL) == 0)
    lk_poll_run(poll);
  lk_poll_free(poll);
  return exit_code;
}
