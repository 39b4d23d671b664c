/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_DRIVER_H
#define LK_NET_DRIVER_H

/**
 * @file
 * The driver: the clients of one event loop, their earliest deadline, and
 * wakeups by other threads.
 */

#include <latchkey/client.h>

#include "base/heap.h"
#include "base/list.h"
#include "net/clock.h"
#include "net/fork_check.h"
#include "net/loop.h"
#include "net/resolver.h"
#include "net/wakeup.h"

/**
 * Invokes a callback on the loop's thread at a time of a clock. If the clock
 * has no timerfd, a timer of the loop serves, which may stand still while the
 * machine is suspended: the callback is then late by LK_ALARM_MAX_MS at most.
 */
typedef struct lk_alarm {
  /** Set by the user. It may be called before `at_ms`, so it must read the
      clock itself and set the alarm again. */
  void (*on_alarm)(struct lk_alarm *a);
  lk_loop *loop;
  const lk_clock *clock;
  int64_t at_ms;       /**< INT64_MAX: no alarm is set */
  lk_loop_io io;       /**< watches the timerfd of `clock` */
  lk_loop_timer timer; /**< is used if there is none */
} lk_alarm;

/** The longest time for which a timer of the loop is set. */
enum { LK_ALARM_MAX_MS = 1000 };

/** Start watching. `on_alarm` is set, and the rest is zeros. `clock` outlives
    the alarm. An alarm does not keep the loop running. */
void lk__alarm_start(lk_alarm *a, lk_loop *loop, const lk_clock *clock);
/**
 * Make sure that `on_alarm` is called at `at_ms` or earlier. An alarm for an
 * earlier time is kept: one needless wakeup is cheaper than a system call each
 * time that a deadline is postponed.
 */
void lk__alarm_set(lk_alarm *a, int64_t at_ms);
/** To be called in `on_alarm`: no alarm is set any more. A forked child does
    not call it, since the timerfd is the parent's, too. */
void lk__alarm_clear(lk_alarm *a);
/** Stop watching. */
void lk__alarm_stop(lk_alarm *a);

/** Size of lk_driver_shared.receive_buffer. */
#define LK_RECEIVE_BUFFER_SIZE ((size_t)64 * 1024)

/** What the connections of one loop share. The driver owns it. */
typedef struct lk_driver_shared {
  lk_mem mem;
  lk_loop *loop;
  const lk_clock *clock;
  lk_fork_check *fork_check;
  lk_resolver *resolver;
  unsigned char *receive_buffer;
  size_t refs; /**< one for the owner of the driver, one for each connection and
                    one for each running callback; 0: not initialised */

  lk_link updates; /**< connections to be updated before the loop waits */
  lk_loop_hook update_hook;
  bool updating;     /**< `update_hook` is running */
  uint64_t round;    /**< how many times `update_hook` has run */
  int64_t now_ms;    /**< the time at which the driver last read its clock */
  lk_heap deadlines; /**< the lk_connection.deadline of each connection */
} lk_driver_shared;

static inline bool lk__driver_shared_in_child(const lk_driver_shared *x)
{
  return lk__fork_check_in_child(x->fork_check);
}

/** Drop a reference. The last one frees all that lk__driver_init() has made. */
void lk__driver_shared_unref(lk_driver_shared *x);

/** Add `link` to the updates. It must not be in a list. */
static inline void lk__driver_shared_add_update(lk_driver_shared *x,
                                                lk_link *link)
{
  lk__list_add(&x->updates, link);
  if (!x->updating)
    x->loop->type->request_hook(x->loop, &x->update_hook);
}

/**
 * The clients of a loop. <latchkey/ev.h> documents what the functions here do.
 * They work with any loop that implements net/loop.h.
 */
typedef struct lk_driver {
  /** Called after lk__driver_free(), once no callback of a client runs any
      more: the memory of the driver may be freed. NULL: not called. */
  void (*on_free)(struct lk_driver *d);
  /** Called on the loop's thread after lk__driver_wake(). NULL: not called. */
  void (*on_wake)(struct lk_driver *d);

  lk_driver_shared shared;
  bool freeing;        /**< lk__driver_free() was called */
  lk_link connections; /**< the lk_connection of each client */
  lk_clock clock;
  lk_alarm alarm;   /**< on `clock`, for the earliest deadline */
  lk_wakeup wakeup; /**< for lk__driver_wake() */
} lk_driver;

/** Prepare `d`. The caller has set on_free and on_wake, and zeroed the rest.
    `loop` must outlive the driver. Returns 0, LK_ERR_NO_MEMORY or
    LK_ERR_SYSTEM. */
int lk__driver_init(lk_driver *d, lk_loop *loop, const lk_mem *mem);
/** Free the clients that are left, and then the driver. Does nothing if
    lk__driver_init() has failed or `d` is all zeros. */
void lk__driver_free(lk_driver *d);
/** See lk_ev_client_new(). */
int lk__driver_client_new(lk_client **out, lk_driver *d,
                          const lk_client_config *config);

/* The following may be called from any thread. */

/** May also be called from signal handlers. */
void lk__driver_wake(lk_driver *d);
static inline int64_t lk__driver_clock(const lk_driver *d)
{
  return lk__clock_now(&d->clock);
}
static inline bool lk__driver_in_child(const lk_driver *d)
{
  return lk__driver_shared_in_child(&d->shared);
}

#endif
