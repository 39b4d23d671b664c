/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ev/loop.h"

#include <errno.h>
#include <ev.h>

#include "base/mem.h"

/* A loop made by lk__loop_new(), with the loop of libev that belongs to it. */
typedef struct own_loop {
  lk_ev_loop loop;
  lk_mem mem;
} own_loop;

/* The content of lk_loop_io.room. */
typedef struct io_room {
  ev_io watcher;
  const lk_ev_loop *loop;
} io_room;

/* The content of lk_loop_hook.room. */
typedef struct hook_room {
  ev_prepare prepare;
  const lk_ev_loop *loop;
  unsigned called_in; /* the iteration of the loop that last called the hook */
} hook_room;

_Static_assert(sizeof(io_room) <= sizeof(lk_loop_room), "room for ev_io");
_Static_assert(sizeof(ev_timer) <= sizeof(lk_loop_room), "room for ev_timer");
_Static_assert(sizeof(hook_room) <= sizeof(lk_loop_room), "room for a hook");

static lk_ev_loop *loop_of(lk_loop *l)
{
  return (lk_ev_loop *)(void *)l;
}

static struct ev_loop *ev_of(lk_loop *l)
{
  return loop_of(l)->ev;
}

/* Have libev not wait if `*done` is set. `done` is read before a callback is
   called, because the callback may free what holds it. */
static void break_if_done(struct ev_loop *ev, const bool *done)
{
  if (done != NULL && *done)
    ev_break(ev, EVBREAK_ONE);
}

/* ---- descriptors --------------------------------------------------------- */

static int events_of_libev(int revents)
{
  return ((revents & EV_READ) != 0 ? LK_LOOP_READ : 0) |
         ((revents & EV_WRITE) != 0 ? LK_LOOP_WRITE : 0) |
         ((revents & EV_ERROR) != 0 ? LK_LOOP_ERROR : 0);
}

static int events_for_libev(int events)
{
  return ((events & LK_LOOP_READ) != 0 ? EV_READ : 0) |
         ((events & LK_LOOP_WRITE) != 0 ? EV_WRITE : 0);
}

/* A watcher that a hook has fed is called before libev waits. */
static void on_io(struct ev_loop *ev, ev_io *w, int revents)
{
  lk_loop_io *io = w->data;
  const bool *done = ((io_room *)(void *)io->room.bytes)->loop->done;

  io->on_events(io, events_of_libev(revents));
  break_if_done(ev, done);
}

/* The watcher of libev in the room of `io`. It is initialised for each use, but
   not while it is active or has an event pending: libev then refers to it. */
static ev_io *io_watcher(lk_loop *l, lk_loop_io *io)
{
  io_room *room = (io_room *)(void *)io->room.bytes;
  ev_io *w = &room->watcher;

  room->loop = loop_of(l);
  if (ev_is_active(w) || ev_is_pending(w))
    return w;
  ev_init(w, on_io);
  ev_set_priority(w, io->urgent ? EV_MAXPRI : 0);
  w->data = io;
  return w;
}

/* libev counts active watchers, and runs while there are any. Our watchers must
   not keep the loop running, so ev_unref() follows each start, and ev_ref()
   goes before each stop. */
static void libev_set_io(lk_loop *l, lk_loop_io *io, int events)
{
  struct ev_loop *ev = ev_of(l);
  ev_io *w = io_watcher(l, io);

  /* ev_is_active() does not tell whether the watcher was started here: libev
     stops a watcher by itself if it cannot watch the descriptor. */
  if (io->events != LK_LOOP_NONE)
    ev_ref(ev);
  ev_io_stop(ev, w); /* also drops an event that is pending */
  io->events = events;
  if (events == LK_LOOP_NONE)
    return;
  ev_io_set(w, io->fd, events_for_libev(events));
  ev_io_start(ev, w);
  ev_unref(ev);
}

static void libev_feed_io(lk_loop *l, lk_loop_io *io, int events)
{
  ev_feed_event(ev_of(l), io_watcher(l, io), events_for_libev(events));
}

/* ---- timers -------------------------------------------------------------- */

#define MIN_INTERVAL_S 1e-6

static void libev_stop_timer(struct ev_loop *ev, ev_timer *w)
{
  if (ev_is_active(w))
    ev_ref(ev);
  ev_timer_stop(ev, w);
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int revents)
{
  lk_loop_timer *t = w->data;

  (void)revents;
  libev_stop_timer(ev, w);
  t->on_timer(t);
}

/* The timer is a repeating one, which on_timer() stops. libev would stop a
   timer that does not repeat by itself, without the ev_ref() that has to go
   with the ev_unref() below. A repeating timer needs an interval above 0, so
   that 0 becomes MIN_INTERVAL_S. */
static void libev_set_timer(lk_loop *l, lk_loop_timer *t, int64_t after_ms)
{
  struct ev_loop *ev = ev_of(l);
  ev_timer *w = (ev_timer *)(void *)t->room.bytes;

  libev_stop_timer(ev, w);
  if (after_ms < 0)
    return;
  ev_now_update(ev); /* else the time counts from when libev last read it */
  ev_init(w, on_timer);
  w->repeat = after_ms == 0 ? MIN_INTERVAL_S : (double)after_ms / 1000;
  w->data = t;
  ev_timer_again(ev, w);
  ev_unref(ev);
}

/* ---- hooks --------------------------------------------------------------- */

static hook_room *hook_room_of(lk_loop_hook *h)
{
  return (hook_room *)(void *)h->room.bytes;
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int revents)
{
  lk_loop_hook *h = w->data;
  const bool *done = hook_room_of(h)->loop->done;

  (void)revents;
  hook_room_of(h)->called_in = ev_iteration(ev);
  h->before_wait(h);
  break_if_done(ev, done);
}

static void libev_set_hook(lk_loop *l, lk_loop_hook *h, bool on)
{
  struct ev_loop *ev = ev_of(l);
  hook_room *room = hook_room_of(h);
  ev_prepare *w = &room->prepare;

  if (ev_is_active(w))
    ev_ref(ev);
  ev_prepare_stop(ev, w);
  if (!on)
    return;
  ev_prepare_init(w, on_prepare);
  ev_set_priority(w, EV_MINPRI); /* after the program's own hooks */
  w->data = h;
  room->loop = loop_of(l);
  /* Another hook may set this one, when libev has already chosen the hooks of
     this iteration. The hook then counts as called, so that
     libev_request_hook() calls it. */
  room->called_in = ev_iteration(ev);
  ev_prepare_start(ev, w);
  ev_unref(ev);
}

/* libev calls the hook before it waits, unless it has done so in this
   iteration. In that case an event is fed to the hook, and libev does not wait.
 */
static void libev_request_hook(lk_loop *l, lk_loop_hook *h)
{
  hook_room *room = hook_room_of(h);

  if (ev_is_active(&room->prepare) && room->called_in == ev_iteration(ev_of(l)))
    ev_feed_event(ev_of(l), &room->prepare, EV_PREPARE);
}

/* ---- the loop ------------------------------------------------------------ */

static void libev_keep_running(lk_loop *l, bool on)
{
  if (on)
    ev_ref(ev_of(l));
  else
    ev_unref(ev_of(l));
}

static bool libev_run_once(lk_loop *l, const bool *done)
{
  loop_of(l)->done = done;
  bool more = ev_run(ev_of(l), EVRUN_ONCE) != 0;

  loop_of(l)->done = NULL;
  return more;
}

static void libev_free(lk_loop *l)
{
  own_loop *own = (own_loop *)(void *)l;
  lk_mem mem = own->mem;

  ev_loop_destroy(ev_of(l));
  lk__mem_free(&mem, own);
}

static const lk_loop_type libev_loop_type = {
    .set_io = libev_set_io,
    .feed_io = libev_feed_io,
    .set_timer = libev_set_timer,
    .set_hook = libev_set_hook,
    .request_hook = libev_request_hook,
    .keep_running = libev_keep_running,
    .run_once = libev_run_once,
    .free = libev_free,
};

void lk__ev_loop_attach(lk_ev_loop *l, struct ev_loop *ev)
{
  l->base.type = &libev_loop_type;
  l->ev = ev;
  l->done = NULL;
}

int lk__loop_new(lk_loop **out, const lk_mem *mem)
{
  own_loop *own = lk__mem_new(mem, sizeof *own);

  *out = NULL;
  if (own == NULL)
    return LK_ERR_NO_MEMORY;

  /* EVFLAG_NOENV: the environment variable LIBEV_FLAGS has no effect. */
  struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

  if (ev == NULL) {
    int error = errno;

    lk__mem_free(mem, own);
    errno = error;
    return LK_ERR_SYSTEM;
  }
  own->mem = *mem;
  lk__ev_loop_attach(&own->loop, ev);
  *out = &own->loop.base;
  return 0;
}
