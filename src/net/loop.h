/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_LOOP_H
#define LK_NET_LOOP_H

/**
 * @file
 * What the library and the command need of an event loop. src/ev implements it
 * with libev.
 *
 * A loop belongs to one thread; other threads and signal handlers wake it by a
 * lk_wakeup (net/wakeup.h). A loop knows neither signals nor child processes:
 * both are watched as descriptors (signalfd, a pipe). Watchers are memory of
 * their users, all zeros but for the members that are said to be set, and are
 * stopped before that memory is freed. Any watcher may be stopped in any
 * callback. No function here fails: if the loop cannot watch a descriptor, the
 * watcher gets LK_LOOP_ERROR.
 */

#include <latchkey/types.h>

enum { LK_LOOP_READ = 1, LK_LOOP_WRITE = 2, LK_LOOP_ERROR = 4 };

typedef struct lk_loop lk_loop;

/** The part of a watcher that belongs to the implementation of the loop. */
typedef union lk_loop_room {
  void *pointer;
  int64_t number;
  double time;
  unsigned char bytes[48];
} lk_loop_room;

/** Watches the level of a descriptor. Does not keep the loop running. */
typedef struct lk_loop_io {
  /** The descriptor is as `events` (of those watched, or LK_LOOP_ERROR). An
      error of the descriptor and the end of its peer count as each event that
      is watched. */
  void (*on_events)(struct lk_loop_io *io, int events);
  int fd;      /**< set while nothing is watched */
  int events;  /**< what is watched; 0: nothing. The loop sets it */
  bool urgent; /**< its callback comes before those that are not */
  lk_loop_room room;
} lk_loop_io;

/** Calls once. Does not keep the loop running. `on_timer` may be changed while
    the timer is not set. */
typedef struct lk_loop_timer {
  void (*on_timer)(struct lk_loop_timer *t);
  lk_loop_room room;
} lk_loop_timer;

/** Calls each time before the loop waits, after all other callbacks. */
typedef struct lk_loop_hook {
  void (*before_wait)(struct lk_loop_hook *h);
  lk_loop_room room;
} lk_loop_hook;

/** An implementation. */
typedef struct lk_loop_type {
  /** Watch `events` from now on; 0: nothing, and no callback that is due. */
  void (*set_io)(lk_loop *l, lk_loop_io *io, int events);
  /** Call `io` with `events` once without waiting, whatever its descriptor. */
  void (*feed_io)(lk_loop *l, lk_loop_io *io, int events);
  /** Call once in `after_ms` from now, in place of an earlier time; < 0: stop.
      "Now" may be as old as the present callback. The clock may stand still
      while the machine is suspended. */
  void (*set_timer)(lk_loop *l, lk_loop_timer *t, int64_t after_ms);
  void (*set_hook)(lk_loop *l, lk_loop_hook *h, bool on);
  /** Call `h` once more before the loop waits, even if it has been called. Not
      needed, and not allowed, inside of `h`. */
  void (*request_hook)(lk_loop *l, lk_loop_hook *h);
  /** Keep the loop running, or no longer. These calls are counted. */
  void (*hold)(lk_loop *l, bool on);
  /** Call the hooks; unless they have set `*done`, wait for events; call their
      watchers. false: nothing keeps the loop running. */
  bool (*run_once)(lk_loop *l, const bool *done);
  void (*free)(lk_loop *l);
} lk_loop_type;

struct lk_loop {
  const lk_loop_type *type;
};

/** Make a loop. One implementation of a build defines this. 0; LK_ERR_NO_MEMORY
   or LK_ERR_SYSTEM, with errno. `mem` is copied. The environment has no
   influence on the loop. */
int lk__loop_new(lk_loop **out, const lk_mem *mem);

static inline void lk__loop_set_io(lk_loop *l, lk_loop_io *io, int events)
{
  if (events != io->events || events == 0)
    l->type->set_io(l, io, events);
}

static inline void lk__loop_set_timer(lk_loop *l, lk_loop_timer *t,
                                      int64_t after_ms)
{
  l->type->set_timer(l, t, after_ms);
}

static inline void lk__loop_hold(lk_loop *l, bool on)
{
  l->type->hold(l, on);
}

/** NULL is fine. */
static inline void lk__loop_free(lk_loop *l)
{
  if (l != NULL)
    l->type->free(l);
}

/** Run until `*done`, or until nothing keeps the loop running. */
static inline void lk__loop_run(lk_loop *l, const bool *done)
{
  while (!*done && l->type->run_once(l, done))
    ;
}

#endif
