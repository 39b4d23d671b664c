/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shared lock of the tutorials, with nodes r-N and w-N: a reader waits for
 * the nearest writer before it, a writer for its direct predecessor. Five
 * sessions queue in this order: two readers, a writer, a reader, a writer. When
 * all are in the queue, each holds for a while after its grant.
 *
 *     shared [HOSTS]
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>

enum { USERS = 5, HOLD_MS = 100 };

typedef struct user {
  const char *name;
  bool writes;
  lk_client *client;
  lk_rwlock *rw;
  lk_lock *side;
  lk_timer hold;
  bool queued; /* the next user may acquire */
  bool holds;
} user;

static user users[USERS] = {{.name = "reader 1"},
                            {.name = "reader 2"},
                            {.name = "writer 1", .writes = true},
                            {.name = "reader 3"},
                            {.name = "writer 2", .writes = true}};
static int failed;

static void ask(user *u);

static void hold_for_a_while(user *u)
{
  lk_timer_start(u->client, &u->hold, lk_client_clock(u->client) + HOLD_MS);
}

/* This user is in the queue, so the next one may acquire. After the last one,
 * those who hold may release. */
static void let_next_acquire(user *u)
{
  if (u->queued)
    return;
  u->queued = true;
  if (u + 1 < users + USERS) {
    ask(u + 1);
    return;
  }
  for (int i = 0; i < USERS; i++)
    if (users[i].holds)
      hold_for_a_while(&users[i]);
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  (void)lock;
  if (event->type == LK_LOCK_EVENT_WAITING)
    let_next_acquire(arg);
}

static void leave(user *u)
{
  failed += lk_client_close(u->client, NULL, NULL) != 0;
}

static void on_enough(lk_client *c, void *arg)
{
  user *u = arg;

  (void)c;
  printf("%s releases\n", u->name);
  u->holds = false;
  failed += lk_lock_release(u->side, NULL, NULL) != 0;
  leave(u);
}

static void on_held(lk_lock *lock, int err, void *arg)
{
  user *u = arg;

  (void)lock;
  if (err == 0) {
    printf("%s holds\n", u->name);
    u->holds = true;
    if (users[USERS - 1].queued)
      hold_for_a_while(u);
  } else {
    fprintf(stderr, "%s: %s\n", u->name, lk_error_text(err));
    failed++;
    leave(u);
  }
  let_next_acquire(u);
}

static void ask(user *u)
{
  if (lk_lock_acquire(u->side, 60000, on_held, u) != 0) {
    failed++;
    leave(u);
  }
}

static int begin(user *u, lk_ev *ev, const lk_client_config *config)
{
  lk_lock_config native = {.size = sizeof native,
                           .layout = LK_LAYOUT_NATIVE,
                           .on_event = on_event,
                           .arg = u};
  int err = lk_ev_client_new(&u->client, ev, config);

  u->hold = (lk_timer){.fire = on_enough, .arg = u};
  if (err == 0)
    err = lk_rwlock_new(&u->rw, u->client, "/zk-book/shared_lock", &native);
  if (err == 0)
    u->side =
        u->writes ? lk_rwlock_write_side(u->rw) : lk_rwlock_read_side(u->rw);
  return err;
}

int main(int argc, char **argv)
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof config,
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_ev *ev = NULL;
  int err = lk_ev_new(&ev, loop, NULL);

  for (int i = 0; i < USERS && err == 0; i++)
    err = begin(&users[i], ev, &config);
  if (err == 0) {
    ask(&users[0]);
    ev_run(loop, 0); /* until all clients are closed */
  } else {
    fprintf(stderr, "cannot begin: %s\n", lk_error_text(err));
  }
  for (int i = 0; i < USERS; i++)
    lk_rwlock_free(users[i].rw);
  lk_ev_free(ev); /* frees the clients as well */
  return err != 0 || failed != 0;
}
