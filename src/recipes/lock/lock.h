/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_H
#define LK_RECIPES_LOCK_LOCK_H

/**
 * @file
 * The handle of a lock of any kind.
 */

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"
#include "recipes/queue/acquisition_holding.h"
#include "recipes/queue/contender.h"

#include <latchkey/lock.h>

/** A callback that is invoked once. */
typedef struct lk_completion {
  lk_lock_cb done;
  void *arg;
  bool pending;
} lk_completion;

/** A multi that begins with checks of our nodes. It outlives the lock. */
typedef struct lk_lock_multi {
  lk_acquisition *acquisition;
  lk_lock *lock; /**< of whose lk_lock_verify() it is part; or NULL */
  lk_multi_cb done;
  void *arg;
} lk_lock_multi;

/** Where the acquisitions of a handle come from, by the kind of lock. */
typedef struct lk_acquisition_source {
  /** Make an acquisition; NULL: no memory. */
  lk_acquisition *(*make)(lk_lock *l,
                          const lk_acquisition_callbacks *callbacks);
  void *plan; /**< what `make` needs beside the options; or NULL */
  void (*free_plan)(void *plan, const lk_mem *mem); /**< or NULL */
} lk_acquisition_source;

/** Events that are reported once in the life of a handle. */
typedef struct lk_reported_events {
  bool mixed_queue;
  bool unwatched;
  bool counter_near_end;
} lk_reported_events;

typedef struct lk_lock_timers {
  lk_timer acquire;
  lk_timer release;   /**< runs only while there is `released` */
  lk_timer next_turn; /**< completes what needs no reply */
} lk_lock_timers;

struct lk_lock {
  lk_session_lease *lease;
  lk_lock_options options; /**< of its acquisitions */
  void (*on_event)(lk_lock *l, const lk_lock_event *event, void *arg);
  void *arg;
  lk_acquisition_source source;
  lk_acquisition *acquisition; /**< acquiring or holding; else NULL */
  lk_acquisition *released;    /**< `release` waits for its end; or NULL */
  size_t count;                /**< how often the holder has acquired it */
  bool lost;
  bool not_reentrant; /**< the holder cannot acquire it again */
  int start_err;      /**< why the last acquire ended, if it could not begin */
  lk_completion acquire;
  bool acquire_reenters; /**< the lock was held before */
  bool acquire_is_late; /**< its deadline had passed: there is no acquisition */
  lk_completion release; /**< also of a release that only counts down */
  lk_completion verify;
  lk_lock_multi *verifying; /**< under way for `verify`; or NULL */
  lk_lock_timers timers;
  lk_reported_events reported;
  unsigned callbacks_running; /**< callbacks of the user on the stack */
  bool freed;       /**< when no callback runs any more it is destroyed */
  lk_lock *partner; /**< the other side of a read-write lock; or NULL */
  /** With a partner: why lk_lock_acquire() is refused in its state, or 0. */
  int (*side_refusal)(const lk_lock *l);
};

/** Make a handle for one side of a lock. `config` is a copy with all members.
 */
int lk__lock_make(lk_lock **out, lk_client *c, const char *path,
                  const lk_lock_config *config, lk_multilock_side side);

/** Make an acquisition of one contender; NULL: no memory. */
lk_acquisition *
lk__lock_make_contender(lk_lock *l, const lk_acquisition_callbacks *callbacks);

bool lk__lock_holds(const lk_lock *l);
/** Start one of its timers, `in_ms` from now. */
void lk__lock_start_timer(lk_lock *l, lk_timer *t, int64_t in_ms);
void lk__lock_stop_timer(lk_lock *l, lk_timer *t);
/** Stop an acquisition; with `notify` its `gone` is invoked later. */
void lk__lock_stop_acquisition(lk_acquisition *a, bool notify);
/** Stop the acquire under way, and complete it with `err`. */
void lk__lock_give_up(lk_lock *l, int err);
/** Take the acquisition from the lock, which has none then. */
lk_acquisition *lk__lock_detach_acquisition(lk_lock *l);
/** What its acquisition reports to a lock (lock_events.c). */
extern const lk_acquisition_callbacks lk__lock_callbacks;

#endif
