/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_LOOP_H
#define LK_NET_LOOP_H

/**
 * @file
 * The event loop that the driver and the command need. src/ev implements it
 * with libev, src/poll with poll(2).
 *
 * A loop belongs to one thread; other threads and signal handlers wake it by a
 * lk_wakeup (net/wakeup.h). Signals and child processes are watched as
 * descriptors (signalfd, a pipe), since a loop has no functions for them.
 *
 * The memory of a watcher (lk_loop_io, lk_loop_timer, lk_loop_hook) belongs to
 * its user, who fills it with zeros, sets the callback (and the descriptor),
 * and stops the watcher before he frees the memory. Any watcher may be stopped
 * in any callback. Watching does not fail: if the loop cannot watch a
 * descriptor, the watcher's callback gets LK_LOOP_ERROR.
 */

#include <latchkey/types.h>

/** Events of a descriptor; a set of events is a sum of these. */
enum {
  LK_LOOP_NONE = 0,
  LK_LOOP_READ = 1,
  LK_LOOP_WRITE = 2,
  LK_LOOP_ERROR = 4
};

typedef struct lk_loop lk_loop;

/** The part of a watcher that belongs to the implementation of the loop. */
typedef union lk_loop_room {
  unsigned char bytes[56];
  /* For the alignment of `bytes` only. */
  void *pointer;
  int64_t number;
  double time;
} lk_loop_room;

/** Calls `on_events` for as long as a descriptor is readable or writable. Does
    not keep the loop running. */
typedef struct lk_loop_io {
  /** `events`: those of the watched events that have come. If the descriptor
      cannot be watched, LK_LOOP_ERROR and both other events. If the descriptor
      has an error or its peer has closed it, all watched events have come. A
      loop may call it although nothing has come. */
  void (*on_events)(struct lk_loop_io *io, int events);
  int fd;      /**< may be changed only while nothing is watched */
  int events;  /**< set by the loop: the watched events */
  bool urgent; /**< is called before the watchers that are not urgent */
  lk_loop_room room;
} lk_loop_io;

/** Calls `on_timer` once for each time the timer is set. Does not keep the loop
    running. `on_timer` may be changed while the timer is not set. */
typedef struct lk_loop_timer {
  void (*on_timer)(struct lk_loop_timer *t);
  lk_loop_room room;
} lk_loop_timer;

/** Calls `before_wait` each time before the loop waits, after all other
    callbacks. */
typedef struct lk_loop_hook {
  void (*before_wait)(struct lk_loop_hook *h);
  lk_loop_room room;
} lk_loop_hook;

/** The functions of an implementation. */
typedef struct lk_loop_type {
  /** Watch `events` from now on. LK_LOOP_NONE: watch nothing, and drop a
      callback that is already due. */
  void (*set_io)(lk_loop *l, lk_loop_io *io, int events);
  /** Call `io` once with `events` before the loop waits again, even if its
      descriptor is not ready. */
  void (*feed_io)(lk_loop *l, lk_loop_io *io, int events);
  /** Call `t` once, in `after_ms`; this replaces an earlier setting. Below 0:
      do not call. The time counts from now. It may stand still while the
      machine is suspended. */
  void (*set_timer)(lk_loop *l, lk_loop_timer *t, int64_t after_ms);
  /** Call `h` before each wait from now on. `on` false: do not call it any
      more. */
  void (*set_hook)(lk_loop *l, lk_loop_hook *h, bool on);
  /** Call `h`, if it is on, before the loop waits, even if it has already been
      called since the last wait. Must not be used inside of `h`. */
  void (*request_hook)(lk_loop *l, lk_loop_hook *h);
  /** Keep the loop running. Each call with true is undone by one with false. */
  void (*keep_running)(lk_loop *l, bool on);
} lk_loop_type;

struct lk_loop {
  const lk_loop_type *type;
};

/** As lk_loop_type.set_io, without a call if `events` are watched already. */
static inline void lk__loop_set_io(lk_loop *l, lk_loop_io *io, int events)
{
  /* Even if nothing is watched, a callback may be due, which NONE drops. */
  if (events != io->events || events == LK_LOOP_NONE)
    l->type->set_io(l, io, events);
}

/** Watch nothing, and drop a callback that is already due. */
static inline void lk__loop_stop_io(lk_loop *l, lk_loop_io *io)
{
  lk__loop_set_io(l, io, LK_LOOP_NONE);
}

static inline void lk__loop_set_timer(lk_loop *l, lk_loop_timer *t,
                                      int64_t after_ms)
{
  l->type->set_timer(l, t, after_ms);
}

static inline void lk__loop_stop_timer(lk_loop *l, lk_loop_timer *t)
{
  l->type->set_timer(l, t, -1);
}

static inline void lk__loop_start_hook(lk_loop *l, lk_loop_hook *h)
{
  l->type->set_hook(l, h, true);
}

static inline void lk__loop_stop_hook(lk_loop *l, lk_loop_hook *h)
{
  l->type->set_hook(l, h, false);
}

/** Keep the loop running until lk__loop_unref(). References are counted. */
static inline void lk__loop_ref(lk_loop *l)
{
  l->type->keep_running(l, true);
}

static inline void lk__loop_unref(lk_loop *l)
{
  l->type->keep_running(l, false);
}

#endif
