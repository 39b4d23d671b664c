/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The asynchronous lock of the tutorials, with nodes /tasks/lockN: ten workers
 * on one thread, each with its own session. Each acquires the lock, works for a
 * while after the grant, and releases. No call blocks.
 *
 *     callbacks [HOSTS]
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>

enum { WORKERS = 10, WORK_MS = 20 };

typedef struct worker {
  char name[24];
  lk_client *client;
  lk_lock *lock;
  lk_timer work;
} worker;

static worker workers[WORKERS];
static int inside, most, done, failed;

static void leave(worker *w)
{
  failed += lk_client_close(w->client, NULL, NULL) != 0;
}

static void on_worked(lk_client *c, void *arg)
{
  worker *w = arg;

  (void)c;
  inside--;
  done++;
  failed += lk_lock_release(w->lock, NULL, NULL) != 0;
  leave(w); /* outstanding requests complete first */
}

static void on_held(lk_lock *lock, int err, void *arg)
{
  worker *w = arg;

  if (err != 0) {
    fprintf(stderr, "%s: %s\n", w->name, lk_error_text(err));
    failed++;
    leave(w);
    return;
  }
  inside++;
  most = inside > most ? inside : most;
  printf("%s holds %s\n", w->name, lk_lock_node(lock));
  lk_timer_start(w->client, &w->work, lk_client_clock(w->client) + WORK_MS);
}

static int begin(worker *w, lk_ev *ev, const lk_client_config *config)
{
  lk_lock_config native = {.size = sizeof native,
                           .data = lk_text(w->name),
                           .layout = LK_LAYOUT_NATIVE,
                           .prefix = "lock"};
  int err = lk_ev_client_new(&w->client, ev, config);

  w->work = (lk_timer){.fire = on_worked, .arg = w};
  if (err == 0)
    err = lk_lock_new(&w->lock, w->client, "/tasks", &native);
  return err != 0 ? err : lk_lock_acquire(w->lock, 60000, on_held, w);
}

int main(int argc, char **argv)
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof config,
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_ev *ev = NULL;
  int err = lk_ev_new(&ev, loop, NULL);

  for (int i = 0; i < WORKERS && err == 0; i++) {
    snprintf(workers[i].name, sizeof workers[i].name, "worker %d", i);
    err = begin(&workers[i], ev, &config);
  }
  if (err == 0)
    ev_run(loop, 0); /* until all clients are closed */
  else
    fprintf(stderr, "cannot begin: %s\n", lk_error_text(err));
  printf("%d workers, at most %d at a time\n", done, most);
  for (int i = 0; i < WORKERS; i++)
    lk_lock_free(workers[i].lock);
  lk_ev_free(ev); /* frees the clients as well */
  return err != 0 || failed != 0 || most != 1;
}
