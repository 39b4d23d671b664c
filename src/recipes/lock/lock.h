/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_H
#define LK_RECIPES_LOCK_LOCK_H

#include "recipes/lease/session_lease.h"
#include "recipes/lock/lock_options.h"
#include "recipes/queue/acquisition_state.h"
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

struct lk_lock {
  lk_session_lease *lease;
  lk_lock_options options; /**< of its acquisitions */
  void (*on_event)(lk_lock *l, const lk_lock_event *event, void *arg);
  void *arg;
  /** Make an acquisition; NULL: no memory. */
  lk_acquisition *(*make)(lk_lock *l, const lk_acquisition_callbacks *who);
  lk_acquisition *acquisition; /**< acquiring or holding; else NULL */
  lk_acquisition *released;    /**< `release` waits for its end; or NULL */
  size_t count;
  bool lost;
  int start_err; /**< why the last acquire ended, if it could not begin */
  bool told_mixed;
  bool told_unwatched;
  bool told_limit;
  lk_completion acquire;
  bool again; /**< it is that of a re-entrance */
  bool late;  /**< its deadline had passed: there is no acquisition */
  lk_completion release; /**< also that of a count-down */
  lk_completion verify;
  lk_lock_multi *verifying; /**< under way for `verify`; or NULL */
  lk_timer timeout;
  lk_timer release_timeout; /**< runs only while `released` is there */
  lk_timer soon; /**< completes in the next turn what needs no reply */
  unsigned busy; /**< callbacks of the user on the stack */
  bool freed;
  bool once;        /**< the holder cannot acquire it again */
  lk_lock *partner; /**< the other side of a read-write lock; or NULL */
  /** With a partner: why lk_lock_acquire() is refused in its state, or 0. */
  int (*side_refusal)(const lk_lock *l);
  void *plan; /**< what `make` needs besides; or NULL */
  void (*free_plan)(void *plan, const lk_mem *mem); /**< or NULL */
};

/** As lk_lock_new(), for any place in a queue; of a config that was copied. */
int lk__lock_make(lk_lock **out, lk_client *c, const char *path,
                  const lk_lock_config *config, lk_multilock_side side);

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
