/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/driver.h"

#include "base/list.h"
#include "base/mem.h"
#include "net/connection.h"
#include "net/fork_check.h"
#include "net/wakeup.h"

/* ---- the alarm ----------------------------------------------------------- */

static void on_timerfd(lk_loop_io *io, int events)
{
  lk_alarm *a = LK_OWNER(io, lk_alarm, io);

  (void)events;
  a->on_alarm(a);
}

static void on_loop_timer(lk_loop_timer *t)
{
  lk_alarm *a = LK_OWNER(t, lk_alarm, timer);

  a->on_alarm(a);
}

/* With a timerfd the alarm is urgent: if the process was stopped for long,
   clients learn of their passed deadlines before they get the bytes that have
   come meanwhile. */
void lk__alarm_start(lk_alarm *a, lk_loop *loop, const lk_clock *clock)
{
  a->loop = loop;
  a->clock = clock;
  a->at_ms = INT64_MAX;
  a->timer.on_timer = on_loop_timer;
  a->io.on_events = on_timerfd;
  a->io.fd = clock->timer_fd;
  a->io.urgent = true;
  if (clock->timer_fd >= 0)
    lk__loop_set_io(loop, &a->io, LK_LOOP_READ);
}

static void alarm_set_loop_timer(lk_alarm *a)
{
  int64_t now_ms = lk__clock_now(a->clock);
  int64_t left_ms = a->at_ms > now_ms ? a->at_ms - now_ms : 0;

  lk__loop_set_timer(a->loop, &a->timer,
                     left_ms < LK_ALARM_MAX_MS ? left_ms : LK_ALARM_MAX_MS);
}

void lk__alarm_set(lk_alarm *a, int64_t at_ms)
{
  if (at_ms >= a->at_ms)
    return; /* the user sets the next alarm when the earlier one has fired */
  a->at_ms = at_ms;
  if (a->clock->timer_fd >= 0)
    lk__clock_set_timer(a->clock, at_ms);
  else
    alarm_set_loop_timer(a);
}

void lk__alarm_clear(lk_alarm *a)
{
  a->at_ms = INT64_MAX;
  lk__clock_clear_timer(a->clock);
}

void lk__alarm_stop(lk_alarm *a)
{
  lk__loop_stop_io(a->loop, &a->io);
  lk__loop_stop_timer(a->loop, &a->timer);
}

/* ---- events of the loop -------------------------------------------------- */

static lk_driver *driver_of(lk_driver_shared *x)
{
  return LK_OWNER(x, lk_driver, shared);
}

static void driver_stop_watchers(lk_driver *d)
{
  lk_driver_shared *x = &d->shared;

  lk__loop_stop_hook(x->loop, &x->update_hook);
  lk__alarm_stop(&d->alarm);
  lk__wakeup_stop(&d->wakeup);
}

/* A forked child may go on using the loop. No watcher for a connection of the
   parent may stay on the loop then. */
static void driver_abandon(lk_driver *d)
{
  for (lk_link *l = d->connections.next; l != &d->connections; l = l->next)
    lk__connection_abandon(LK_OWNER(l, lk_connection, link));
  lk__resolver_free(d->shared.resolver);
  d->shared.resolver = NULL;
  driver_stop_watchers(d);
}

static void driver_update_connections(lk_driver_shared *x)
{
  while (!lk__list_empty(&x->updates) && !lk__driver_shared_in_child(x)) {
    lk_connection *n = LK_OWNER(x->updates.next, lk_connection, update);

    lk__list_remove(&n->update);
    lk__connection_update(n);
  }
}

static void driver_before_wait(lk_loop_hook *h)
{
  lk_driver_shared *x = LK_OWNER(h, lk_driver_shared, update_hook);
  lk_driver *d = driver_of(x);

  if (lk__driver_shared_in_child(x)) {
    driver_abandon(d);
    return;
  }
  x->refs++; /* a callback of a client may free the driver */
  x->round++;
  x->updating = true;
  if (!lk__list_empty(&x->updates))
    x->now_ms = lk__clock_now(&d->clock);
  do { /* an update may end a lookup, and a lookup may request an update */
    driver_update_connections(x);
    lk__resolver_deliver(x->resolver);
  } while (!lk__list_empty(&x->updates) && !lk__driver_shared_in_child(x));
  x->updating = false;
  if (x->deadlines.root != NULL && !lk__driver_shared_in_child(x))
    lk__alarm_set(&d->alarm, x->deadlines.root->at);
  lk__driver_shared_unref(x);
}

static void on_alarm(lk_alarm *a)
{
  lk_driver *d = LK_OWNER(a, lk_driver, alarm);
  lk_driver_shared *x = &d->shared;

  if (lk__driver_shared_in_child(x))
    return;
  x->refs++; /* a callback of a client may free the driver */
  lk__alarm_clear(&d->alarm);
  x->now_ms = lk__clock_now(&d->clock);
  while (x->deadlines.root != NULL && x->deadlines.root->at <= x->now_ms &&
         !lk__driver_shared_in_child(x)) {
    lk_connection *n = LK_OWNER(x->deadlines.root, lk_connection, deadline);

    lk__heap_remove(&x->deadlines, &n->deadline);
    lk__connection_on_deadline(n);
  }
  lk__driver_shared_unref(x);
}

static void on_driver_wakeup(void *arg)
{
  lk_driver *d = arg;

  if (d->on_wake != NULL)
    d->on_wake(d);
}

/* ---- creation ------------------------------------------------------------ */

static void driver_start_watchers(lk_driver *d)
{
  lk_driver_shared *x = &d->shared;

  x->update_hook.before_wait = driver_before_wait;
  lk__loop_start_hook(x->loop, &x->update_hook);
  d->alarm.on_alarm = on_alarm;
  lk__alarm_start(&d->alarm, x->loop, &d->clock);
}

static int driver_open(lk_driver *d)
{
  lk_driver_shared *x = &d->shared;
  int err = LK_ERR_SYSTEM; /* unless the resolver gives another error */

  x->fork_check = lk__fork_check_new();
  if (x->fork_check == NULL)
    return err;
  if (lk__clock_open(&d->clock) != 0)
    goto fail_clock;
  if (lk__wakeup_open(&d->wakeup, x->loop, x->fork_check, on_driver_wakeup,
                      d) != 0)
    goto fail_wakeup;
  err = lk__resolver_new(&x->resolver, x->loop, &d->clock, x->fork_check,
                         &x->mem);
  if (err == 0)
    return 0;

  lk__wakeup_close(&d->wakeup);
fail_wakeup:
  lk__clock_close(&d->clock);
fail_clock:
  lk__fork_check_free(x->fork_check);
  return err;
}

int lk__driver_init(lk_driver *d, lk_loop *loop, const lk_mem *mem)
{
  lk_driver_shared *x = &d->shared;

  x->mem = *mem;
  x->loop = loop;
  x->clock = &d->clock;
  x->refs = 1;
  lk__list_init(&x->updates);
  lk__list_init(&d->connections);
  x->receive_buffer = lk__mem_new(mem, LK_RECEIVE_BUFFER_SIZE);
  if (x->receive_buffer == NULL) {
    x->refs = 0; /* lk__driver_free() then does nothing */
    return LK_ERR_NO_MEMORY;
  }

  int err = driver_open(d);

  if (err != 0) {
    x->refs = 0;
    lk__mem_free(mem, x->receive_buffer);
    return err;
  }
  driver_start_watchers(d);
  return 0;
}

/* ---- clients ------------------------------------------------------------- */

static int64_t hook_now(void *arg)
{
  const lk_connection *n = arg;

  return lk__clock_now(&driver_of(n->shared)->clock);
}

static void hook_random(void *arg, void *out, size_t len)
{
  const lk_connection *n = arg;

  lk__fork_check_random(n->shared->fork_check, out, len);
}

static void hook_wake(lk_client *c, void *arg)
{
  (void)c;
  lk__connection_request_update(arg);
}

static void hook_freed(lk_client *c, void *arg)
{
  (void)c;
  lk__connection_detach_client(arg);
}

static bool hook_forked(void *arg)
{
  const lk_connection *n = arg;

  return lk__driver_shared_in_child(n->shared);
}

int lk__driver_client_new(lk_client **out, lk_driver *d,
                          const lk_client_config *config)
{
  lk_hooks hooks = {.size = sizeof hooks,
                    .now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .forked = hook_forked};

  *out = NULL;
  if (lk__driver_in_child(d))
    return LK_ERR_FORKED;
  if (d->freeing)
    return LK_ERR_CLOSED;

  lk_connection *n = lk__connection_new(&d->shared);

  if (n == NULL)
    return LK_ERR_NO_MEMORY;
  lk__list_add(&d->connections, &n->link);
  hooks.arg = n;

  int err = lk_client_new(&n->client, config, &hooks);

  if (err != 0) {
    lk__connection_detach_client(n);
    return err;
  }
  err = lk__connection_init_transport(n);
  if (err != 0) {
    lk_client_free(n->client); /* calls hook_freed(), which frees `n` */
    return err;
  }
  lk__connection_request_update(n);
  *out = n->client;
  return 0;
}

/* ---- wakeups by other threads -------------------------------------------- */

/* A forked child shares the descriptor with its parent, and would wake it. */
void lk__driver_wake(lk_driver *d)
{
  if (!lk__driver_in_child(d))
    lk__wakeup_signal(&d->wakeup);
}

/* ---- end ----------------------------------------------------------------- */

static void driver_free_all(lk_driver *d)
{
  const lk_driver_shared *x = &d->shared;

  driver_stop_watchers(d);
  lk__resolver_free(x->resolver);
  lk__wakeup_close(&d->wakeup);
  lk__clock_close(&d->clock);
  lk__fork_check_free(x->fork_check);
  lk__mem_free(&x->mem, x->receive_buffer);
  if (d->on_free != NULL)
    d->on_free(d);
}

void lk__driver_shared_unref(lk_driver_shared *x)
{
  if (--x->refs == 0)
    driver_free_all(driver_of(x));
}

/* A client that is inside a callback is freed only when the callback returns.
   Its connection is then still in `being_freed`, and goes back to the list of
   the driver, where driver_abandon() finds it. */
void lk__driver_free(lk_driver *d)
{
  lk_link being_freed;

  if (d->freeing || d->shared.refs == 0)
    return;
  d->freeing = true;
  lk__list_init(&being_freed);
  while (!lk__list_empty(&d->connections)) {
    lk_connection *n = LK_OWNER(d->connections.next, lk_connection, link);

    lk__list_remove(&n->link);
    lk__list_add(&being_freed, &n->link);
    lk_client_free(n->client);
  }
  lk__list_move(&d->connections, &being_freed);
  lk__driver_shared_unref(&d->shared);
}
