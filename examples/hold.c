/* SPDX-License-Identifier: Apache-2.0 */
/* hold [SERVERS [TIMES]]: work at a timer while a lock is held, on a libev
   loop. INT and the loss of the lock end the work early. */
#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct worker {
  struct ev_loop *loop;
  lk_client *client;
  lk_lock *lock;
  ev_timer timer;
  ev_signal interrupt;
  int left; /* of the work */
  int exit_code;
} worker;

/* ev_run() returns when no watcher is left and the client is closed. A second
   INT has its default action: it ends the process. */
static void finish(worker *w, int exit_code)
{
  w->exit_code = exit_code;
  ev_timer_stop(w->loop, &w->timer);
  ev_signal_stop(w->loop, &w->interrupt);
  lk_lock_release(w->lock, NULL, NULL);   /* refused if it is not held */
  lk_client_close(w->client, NULL, NULL); /* sends the release first */
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
  worker *w = timer->data;

  (void)loop;
  (void)events;
  if (!lk_lock_ok(w->lock))
    return; /* unsure: RENEWED or LOST follows */
  printf("working, token %llu\n", (unsigned long long)lk_lock_token(w->lock));
  if (--w->left == 0)
    finish(w, EXIT_SUCCESS);
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  worker *w = arg;

  printf("%s: %s\n", lk_lock_path(lock), lk_lock_event_text(event->type));
  if (event->type == LK_LOCK_EVENT_LOST)
    finish(w, EXIT_FAILURE);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  worker *w = arg;

  if (err == 0) {
    ev_timer_start(w->loop, &w->timer);
    return;
  }
  fprintf(stderr, "%s: %s\n", lk_lock_path(lock), lk_error_text(err));
  finish(w, EXIT_FAILURE);
}

static void on_interrupt(struct ev_loop *loop, ev_signal *signal, int events)
{
  worker *w = signal->data;

  (void)loop;
  (void)events;
  finish(w, EXIT_FAILURE); /* if it waits, on_acquired() is called */
}

int main(int argc, char **argv)
{
  worker w = {.loop = ev_default_loop(0),
              .left = argc > 2 ? atoi(argv[2]) : 10};
  lk_client_config config = {.size = sizeof(config),
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_lock_config options = {.size = sizeof(options),
                            .data = lk_text("examples/hold"),
                            .on_event = on_event,
                            .arg = &w};
  lk_ev *ev = NULL;
  int err;

  ev_timer_init(&w.timer, on_timer, 0, 0.1);
  ev_signal_init(&w.interrupt, on_interrupt, SIGINT);
  w.timer.data = w.interrupt.data = &w;
  ev_signal_start(w.loop, &w.interrupt);
  if ((err = lk_ev_new(&ev, w.loop, NULL)) == 0 &&
      (err = lk_ev_client_new(&w.client, ev, &config)) == 0 &&
      (err = lk_lock_new(&w.lock, w.client, "/locks/hold", &options)) == 0 &&
      (err = lk_lock_acquire(w.lock, LK_NO_LIMIT, on_acquired, &w)) == 0)
    ev_run(w.loop, 0);
  else
    fprintf(stderr, "%s: %s\n", config.hosts, lk_error_text(err));
  lk_lock_free(w.lock); /* locks before their client */
  lk_client_free(w.client);
  lk_ev_free(ev); /* before the loop */
  return err == 0 ? w.exit_code : EXIT_FAILURE;
}
