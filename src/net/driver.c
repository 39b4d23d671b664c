/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/driver.h"

#include "net/connection.h"

/* ---- what a client asks its surroundings ----------------------------------
 */

static int64_t hook_now(void *arg)
{
  const lk_connection *n = arg;

  return lk__clock_now(&n->ev->clock);
}

static void hook_random(void *arg, void *out, size_t len)
{
  const lk_connection *n = arg;

  lk__fork_check_random(n->ev->origin, out, len);
}

static void hook_wake(lk_client *c, void *arg)
{
  (void)c;
  lk__connection_schedule_update(arg);
}

static void hook_freed(lk_client *c, void *arg)
{
  (void)c;
  lk__connection_detach_client(arg);
}

static bool hook_forked(void *arg)
{
  const lk_connection *n = arg;

  return lk__ev_forked(n->ev);
}

int lk_ev_client_new(lk_client **out, lk_ev *ev, const lk_client_config *config)
{
  lk_hooks hooks = {.now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .forked = hook_forked};

  *out = NULL;
  if (lk__ev_forked(ev))
    return LK_ERR_FORKED;
  if (ev->freed)
    return LK_ERR_CLOSED;

  lk_connection *n = lk__connection_new(ev);

  if (n == NULL)
    return LK_ERR_NO_MEMORY;
  hooks.arg = n;

  int err = lk_client_new(&n->client, config, &hooks);

  if (err != 0) {
    lk__connection_detach_client(n);
    return err;
  }
  err = lk__connection_init_transport(n);
  if (err != 0) {
    lk_client_free(n->client); /* which ends in hook_freed() */
    return err;
  }
  lk__connection_schedule_update(n);
  *out = n->client;
  return 0;
}

/* ---- the turn of the loop -------------------------------------------------
 */

static void settle_all(lk_ev *ev)
{
  while (!lk__list_empty(&ev->dirty) && !lk__ev_forked(ev)) {
    lk_connection *n = LK_OWNER(ev->dirty.next, lk_connection, dirty);

    lk__list_remove(&n->dirty);
    lk__connection_update(n);
  }
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int revents);
static void on_alarm(struct ev_loop *loop, ev_io *w, int revents);

/* Our watchers keep no loop alive. The alarm comes first, so that deadlines are
   seen to before what waits in a socket; the prepare watcher comes last, so
   that it sees what the others asked for. */
static void start_watchers(lk_ev *ev)
{
  ev_prepare_init(&ev->prepare, on_prepare);
  ev->prepare.data = ev;
  ev_set_priority(&ev->prepare, EV_MINPRI);
  ev_prepare_start(ev->loop, &ev->prepare);
  ev_unref(ev->loop);
  ev_io_init(&ev->alarm, on_alarm, ev->clock.fd, EV_READ);
  ev->alarm.data = ev;
  ev_set_priority(&ev->alarm, EV_MAXPRI);
  ev_io_start(ev->loop, &ev->alarm);
  ev_unref(ev->loop);
}

static void stop_watchers(lk_ev *ev)
{
  if (!ev_is_active(&ev->prepare))
    return;
  ev_ref(ev->loop);
  ev_prepare_stop(ev->loop, &ev->prepare);
  ev_ref(ev->loop);
  ev_io_stop(ev->loop, &ev->alarm);
  lk__wakeup_stop(&ev->bell);
}

/* The loop goes on in a child: none of this is its own. */
static void abandon(lk_ev *ev)
{
  for (lk_link *l = ev->conns.next; l != &ev->conns; l = l->next)
    lk__connection_abandon(LK_OWNER(l, lk_connection, all));
  lk__resolver_free(ev->resolver, true);
  ev->resolver = NULL;
  stop_watchers(ev);
}

/* Before the loop waits: all that was asked for since it last did. */
static void on_prepare(struct ev_loop *loop, ev_prepare *w, int revents)
{
  lk_ev *ev = w->data;

  (void)revents;
  if (lk__ev_forked(ev)) {
    abandon(ev);
    return;
  }
  ev->users++;
  ev->turn++;
  ev->walking = true;
  if (!lk__list_empty(&ev->dirty))
    ev->now = lk__clock_now(&ev->clock);
  do {
    settle_all(ev);
    lk__resolver_deliver(ev->resolver);
  } while (!lk__list_empty(&ev->dirty) && !lk__ev_forked(ev));
  ev->walking = false;
  ev->settled = ev_iteration(loop);
  if (ev->due.root != NULL && !lk__ev_forked(ev))
    lk__clock_set_alarm(&ev->clock, ev->due.root->at);
  lk__ev_release(ev);
}

static void on_alarm(struct ev_loop *loop, ev_io *w, int revents)
{
  lk_ev *ev = w->data;

  (void)loop;
  (void)revents;
  if (lk__ev_forked(ev))
    return;
  ev->users++;
  lk__clock_clear_alarm(&ev->clock);
  ev->now = lk__clock_now(&ev->clock);
  while (ev->due.root != NULL && ev->due.root->at <= ev->now &&
         !lk__ev_forked(ev)) {
    lk_connection *n = LK_OWNER(ev->due.root, lk_connection, due);

    lk__heap_remove(&ev->due, &n->due);
    lk__connection_on_deadline(n);
  }
  lk__ev_release(ev);
}

static void on_bell(void *arg)
{
  lk_ev *ev = arg;

  if (ev->woken != NULL)
    ev->woken(ev, ev->woken_arg);
}

/* ---- life ---------------------------------------------------------------- */

int lk_ev_new(lk_ev **out, struct ev_loop *loop, const lk_mem *mem)
{
  lk_ev *ev = lk__mem_new(mem == NULL ? &lk__mem_libc : mem, sizeof *ev);
  int err = LK_ERR_NO_MEMORY;

  *out = NULL;
  if (ev == NULL)
    return err;
  ev->mem = mem == NULL ? lk__mem_libc : *mem;
  ev->loop = loop;
  ev->users = 1;
  ev->settled = ev_iteration(loop);
  lk__list_init(&ev->conns);
  lk__list_init(&ev->dirty);
  ev->room = lk__mem_new(&ev->mem, LK_EV_ROOM);
  if (ev->room == NULL)
    goto fail_room;
  err = LK_ERR_SYSTEM;
  ev->origin = lk__fork_check_new();
  if (ev->origin == NULL)
    goto fail_origin;
  if (lk__clock_open(&ev->clock) != 0)
    goto fail_clock;
  if (lk__wakeup_open(&ev->bell, loop, on_bell, ev) != 0)
    goto fail_bell;
  err = lk__resolver_new(&ev->resolver, loop, &ev->mem);
  if (err != 0)
    goto fail_resolver;
  start_watchers(ev);
  *out = ev;
  return 0;

fail_resolver:
  lk__wakeup_close(&ev->bell);
fail_bell:
  lk__clock_close(&ev->clock);
fail_clock:
  lk__fork_check_free(ev->origin);
fail_origin:
  lk__mem_free(&ev->mem, ev->room);
fail_room:
  lk__mem_free(&ev->mem, ev);
  return err;
}

void lk__ev_release(lk_ev *ev)
{
  lk_mem mem = ev->mem;

  if (--ev->users > 0)
    return;
  stop_watchers(ev);
  lk__resolver_free(ev->resolver, lk__ev_forked(ev));
  lk__wakeup_close(&ev->bell);
  lk__clock_close(&ev->clock);
  lk__fork_check_free(ev->origin);
  lk__mem_free(&mem, ev->room);
  lk__mem_free(&mem, ev);
}

void lk_ev_free(lk_ev *ev)
{
  lk_link going;

  if (ev == NULL || ev->freed)
    return;
  ev->freed = true;
  /* A client whose callback we are in stays until that has returned. */
  lk__list_init(&going);
  while (!lk__list_empty(&ev->conns)) {
    lk_connection *n = LK_OWNER(ev->conns.next, lk_connection, all);

    lk__list_remove(&n->all);
    lk__list_add(&going, &n->all);
    lk_client_free(n->client);
  }
  lk__list_move(&ev->conns, &going);
  lk__ev_release(ev);
}

/* ---- from other threads ---------------------------------------------------
 */

void lk_ev_on_wake(lk_ev *ev, void (*woken)(lk_ev *ev, void *arg), void *arg)
{
  ev->woken = woken;
  ev->woken_arg = arg;
}

void lk_ev_wake(lk_ev *ev)
{
  /* A child would ring the parent's bell. */
  if (!lk__ev_forked(ev))
    lk__wakeup_signal(&ev->bell);
}

int64_t lk_ev_clock(const lk_ev *ev)
{
  return lk__clock_now(&ev->clock);
}

bool lk_ev_forked(const lk_ev *ev)
{
  return lk__ev_forked(ev);
}
