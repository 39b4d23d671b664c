/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What libuv.c, glib.c, libevent.c and epoll.c have in common, a program that
 * takes
 *
 *     HOSTS PATH [HOLD_MS [TIMEOUT_MS]]
 *
 * acquires the lock PATH, holds it for HOLD_MS and releases it. Its loop
 * watches lk_poll_fd() and calls program_dispatch() while that is readable.
 */

#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct program {
  lk_poll *poll;
  lk_client *client;
  lk_lock *lock;
  lk_timer hold; /* runs while the lock is held */
  int64_t hold_ms;
  int exit_code;
} program;

static void finish(program *p, int exit_code)
{
  p->exit_code = exit_code;
  lk_timer_stop(p->client, &p->hold);
  lk_client_close(p->client, NULL, NULL);
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  printf("%s: released\n", lk_lock_path(lock));
  finish(arg, err == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_hold_end(lk_client *client, void *arg)
{
  program *p = arg;

  (void)client;
  lk_lock_release(p->lock, on_released, p);
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  printf("%s: %s\n", lk_lock_path(lock), lk_lock_event_text(event->type));
  if (event->type == LK_LOCK_EVENT_LOST)
    finish(arg, EXIT_FAILURE);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  program *p = arg;
  const char *cause;

  if (err == 0) {
    printf("%s: held, fencing token %llu\n", lk_lock_path(lock),
           (unsigned long long)lk_lock_token(lock));
    p->hold = (lk_timer){.fire = on_hold_end, .arg = p};
    lk_timer_start(p->client, &p->hold,
                   lk_client_clock(p->client) + p->hold_ms);
    return;
  }
  lk_client_last_error(p->client, &cause);
  fprintf(stderr, "%s: %s. %s\n", lk_lock_path(lock), lk_error_text(err),
          cause);
  finish(p, EXIT_FAILURE);
}

static int begin(program *p, const char *hosts, const char *path,
                 int64_t timeout_ms)
{
  lk_client_config config = {.size = sizeof config, .hosts = hosts};
  lk_lock_config options = {
      .size = sizeof options, .on_event = on_event, .arg = p};
  int err = lk_poll_new(&p->poll, NULL);

  if (err == 0)
    err = lk_poll_client_new(&p->client, p->poll, &config);
  if (err == 0)
    err = lk_lock_new(&p->lock, p->client, path, &options);
  return err != 0 ? err : lk_lock_acquire(p->lock, timeout_ms, on_acquired, p);
}

/* Returns the descriptor to be watched, or an error, which is shown. */
static int program_begin(program *p, int argc, char **argv)
{
  int64_t timeout_ms = argc > 4 ? atoi(argv[4]) : 60000;

  *p = (program){.hold_ms = argc > 3 ? atoi(argv[3]) : 1000,
                 .exit_code = EXIT_FAILURE};
  if (argc < 3) {
    fprintf(stderr, "usage: HOSTS PATH [HOLD_MS [TIMEOUT_MS]]\n");
    return LK_ERR_BAD_ARGUMENT;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  int err = begin(p, argv[1], argv[2], timeout_ms);
  int fd = err == 0 ? lk_poll_fd(p->poll) : err;

  if (fd < 0)
    fprintf(stderr, "%s: %s\n", argv[1], lk_error_text(fd));
  return fd;
}

/* false: the client has ended, and so should the loop. */
static bool program_dispatch(program *p)
{
  return lk_poll_dispatch(p->poll, NULL, 0);
}

/* Returns the exit code. */
static int program_end(program *p)
{
  lk_lock_free(p->lock);
  lk_poll_free(p->poll);
  return p->exit_code;
}
