/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ev/loop.h"

#include <ev.h>

/* The content of lk_loop_hook.room. */
typedef struct hook_room {
  ev_prepare prepare;
  unsigned called_in; /* the iteration of the loop that last called the hook */
} hook_room;

_Static_assert(sizeof(ev_io) <= sizeof(lk_loop_room), "room for ev_io");
_Static_assert(sizeof(ev_timer) <= sizeof(lk_loop_room), "room for ev_timer");
_Static_assert(sizeof(hook_room) <= sizeof(lk_loop_room), "room for a hook");

static struct ev_loop *ev_of(lk_loop *l)
{
  return ((lk_ev_loop *)(void *)l)->ev;
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

static void on_io(struct ev_loop *ev, ev_io *w, int revents)
{
  lk_loop_io *io = w->data;

  (void)ev;
  io->on_events(io, events_of_libev(revents));
}

/* The watcher of libev in the room of `io`. It is initialised for each use, but
   not while it is active or has an event pending: libev then refers to it. */
static ev_io *io_watcher(lk_loop_io *io)
{
  ev_io *w = (ev_io *)(void *)io->room.bytes;

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
  ev_io *w = io_watcher(io);

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
  ev_feed_event(ev_of(l), io_watcher(io), events_for_libev(events));
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

  (void)revents;
  hook_room_of(h)->called_in = ev_iteration(ev);
  h->before_wait(h);
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

static const lk_loop_type libev_loop_type = {
    .set_io = libev_set_io,
    .feed_io = libev_feed_io,
    .set_timer = libev_set_timer,
    .set_hook = libev_set_hook,
    .request_hook = libev_request_hook,
    .keep_running = libev_keep_running,
};

void lk__ev_loop_attach(lk_ev_loop *l, struct ev_loop *ev)
{
  l->base.type = &libev_loop_type;
  l->ev = ev;
}
