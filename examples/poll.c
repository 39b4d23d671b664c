/* SPDX-License-Identifier: Apache-2.0 */
/* poll [SERVERS]: hold a lock until a line or the end of standard input comes,
   in a loop with poll(2) that watches standard input, too. */
#include <errno.h>
#include <latchkey/latchkey.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_FDS = 64 };

typedef struct holder {
  lk_client *client;
  lk_lock *lock;
  bool ending; /* finish() was called */
  int exit_code;
} holder;

static void finish(holder *h, int exit_code)
{
  h->ending = true;
  h->exit_code = exit_code;
  lk_lock_release(h->lock, NULL, NULL);   /* refused if it is not held */
  lk_client_close(h->client, NULL, NULL); /* sends the release first */
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  printf("%s: %s\n", lk_lock_path(lock), lk_lock_event_text(event->type));
  fflush(stdout);
  if (event->type == LK_LOCK_EVENT_LOST)
    finish(arg, EXIT_FAILURE);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  if (err == 0) {
    printf("holding %s, fencing token %llu\n", lk_lock_path(lock),
           (unsigned long long)lk_lock_token(lock));
    fflush(stdout);
    return;
  }
  if (((holder *)arg)->ending)
    return; /* finish() has ended the acquire */
  fprintf(stderr, "%s: %s\n", lk_lock_path(lock), lk_error_text(err));
  finish(arg, EXIT_FAILURE);
}

static void read_input(holder *h, struct pollfd *input)
{
  char bytes[256];

  if (read(input->fd, bytes, sizeof(bytes)) < 0 && errno == EINTR)
    return;
  input->fd = -1; /* poll() ignores it from now on */
  finish(h, EXIT_SUCCESS);
}

/* `fds[0]` is standard input; those of the lk_poll follow. A program with more
   clients than fit into `fds` enlarges it and calls lk_poll_prepare() again. */
static void run(holder *h, lk_poll *p)
{
  struct pollfd fds[MAX_FDS] = {{.fd = STDIN_FILENO, .events = POLLIN}};
  bool is_open = true; /* until the client is closed */

  while (is_open) {
    int timeout_ms = -1; /* this program has no deadline of its own */
    size_t count = lk_poll_prepare(p, fds + 1, MAX_FDS - 1, &timeout_ms);

    fds[0].revents = 0;
    if (poll(fds, 1 + (nfds_t)count, timeout_ms) < 0)
      count = 0; /* a signal: poll() has stored nothing */
    /* First the client: after a pause it reports here that the lock is lost. */
    is_open = lk_poll_dispatch(p, fds + 1, count);
    if (is_open && fds[0].revents != 0)
      read_input(h, &fds[0]);
  }
}

int main(int argc, char **argv)
{
  holder h = {.exit_code = EXIT_FAILURE};
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_lock_config options = {.size = sizeof(options),
                            .data = lk_text("examples/poll"),
                            .on_event = on_event,
                            .arg = &h};
  lk_poll *p = NULL;
  int err;

  if ((err = lk_poll_new(&p, NULL)) == 0 &&
      (err = lk_poll_client_new(&h.client, p, &config)) == 0 &&
      (err = lk_lock_new(&h.lock, h.client, "/locks/poll", &options)) == 0 &&
      (err = lk_lock_acquire(h.lock, LK_NO_LIMIT, on_acquired, &h)) == 0)
    run(&h, p);
  else
    fprintf(stderr, "%s: %s\n", config.hosts, lk_error_text(err));
  lk_lock_free(h.lock); /* locks before their client */
  lk_client_free(h.client);
  lk_poll_free(p);
  return err == 0 ? h.exit_code : EXIT_FAILURE;
}
