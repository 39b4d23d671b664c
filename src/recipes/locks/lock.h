/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCKS_LOCK_H
#define LK_RECIPES_LOCKS_LOCK_H

/**
 * @file
 * The handle of a lock of any kind: its state, and what the files of this
 * folder share.
 */

#include <latchkey/lock.h>

#include "recipes/call.h"
#include "recipes/names.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

/** The options of a lock in the form that its acquisitions need. `contender`
    points to the copies in the other members. */
typedef struct lk_lock_options {
  lk_contender_config contender;
  lk_layout layout;
  const lk_layout_rules *rules; /**< of `layout` */
  lk_plain_names plain;         /**< for a layout with a prefix */
  char *path;
  char *data;          /**< not NULL, also if it is empty */
  char *prefix;        /**< NULL: none, or the default */
  lk_acls *acl;        /**< NULL: the default */
  lk_acls *parent_acl; /**< NULL: the default */
} lk_lock_options;

/** Copy a caller's config; NULL: the defaults. 0, or LK_ERR_BAD_ARGUMENT, whose
    reason is logged. */
int lk__lock_config_copy(const lk_client *c, lk_lock_config *out,
                         const lk_lock_config *config);

/** The callback of a call of the user, such as lk_lock_acquire(). It is invoked
    once. */
typedef struct lk_completion {
  lk_lock_cb done; /**< or NULL */
  void *arg;
  bool pending; /**< the callback was not invoked yet */
} lk_completion;

/** A multi that begins with checks of the own nodes. It exists until its reply
    has come, also if the lock is freed before. */
typedef struct lk_lock_multi {
  lk_acquisition *acquisition;
  lk_lock *lock; /**< the lock whose lk_lock_verify() has sent the multi; NULL:
                      a guarded multi, or the verify has been completed */
  lk_multi_cb done; /**< callback of a guarded multi, or NULL */
  void *arg;
} lk_lock_multi;

/** Where the acquisitions of a handle come from, by the kind of lock. */
typedef struct lk_acquisition_source {
  /** Make an acquisition; NULL: no memory. */
  lk_acquisition *(*make)(lk_lock *l,
                          const lk_acquisition_callbacks *callbacks);
  /** Make another handle with the options of this one, but for the callback
      and its `arg` in `config`; NULL: a side of a read-write lock has none of
      its own. */
  int (*clone)(lk_lock **out, const lk_lock *l, const lk_lock_config *config);
  void *plan; /**< what they need beside the options, in one allocation; or
                   NULL */
} lk_acquisition_source;

/** Events that are reported once in the life of a handle. */
typedef struct lk_reported_events {
  bool mixed_queue;
  bool unwatched;
  bool counter_near_end;
} lk_reported_events;

typedef struct lk_lock_timers {
  lk_timer acquire;   /**< the deadline of an acquire */
  lk_timer release;   /**< the deadline of a release; runs only while `released`
                         is set */
  lk_timer next_turn; /**< completes, after the caller has returned, the calls
                         that need no reply of a server */
} lk_lock_timers;

struct lk_lock {
  lk_session_lease *lease;
  lk_lock_options options; /**< options of its acquisitions */
  void (*on_event)(lk_lock *l, const lk_lock_event *event, void *arg);
  void *arg;
  lk_acquisition_source source;
  lk_acquisition *acquisition; /**< acquiring or holding; else NULL */
  lk_acquisition *released;    /**< the acquisition for whose cleanup `release`
                                    waits; or NULL */
  size_t count; /**< how many acquires of the holder await a release */
  bool lost;    /**< the lock was lost, and the user has not released it yet */
  bool not_reentrant; /**< the holder cannot acquire the lock again */
  int start_err; /**< why the last acquisition ended without a grant, or 0; for
                      one that fails while it begins */
  lk_completion acquire;
  bool acquire_reenters; /**< the lock was held when `acquire` was set */
  lk_completion release; /**< also for a release that only reduces `count` */
  /** Calls that lk_lock_reset() or lk_lock_free() has ended, until their
      callbacks are invoked. */
  lk_completion ended_acquire, ended_release;
  lk_completion verify;
  lk_lock_multi *verifying; /**< the multi under way for `verify`; or NULL */
  lk_lock_timers timers;
  lk_listener try_listener; /**< attached while lk_lock_try() is under way: it
                                 ends the try when the connection is lost */
  lk_reported_events reported;
  unsigned callbacks_running; /**< calls of lk__lock_enter() without a leave */
  bool freeing;     /**< destroy the lock when `callbacks_running` is 0 */
  lk_lock *partner; /**< the other side of a read-write lock; or NULL */
};

/** Make a handle for one side of a lock. `config` is a copy of the caller's,
    made by lk__lock_config_copy(). Returns 0 or an error. */
int lk__lock_make(lk_lock **out, lk_client *c, const char *path,
                  const lk_lock_config *config, lk_multilock_side side);
/** The config that a lock was made with, but for the callback and its `arg`. It
    refers to the copies that the lock has. */
lk_lock_config lk__lock_config_of(const lk_lock *l);

/** lk_acquisition_source.make for an acquisition of one contender. */
lk_acquisition *
lk__lock_make_contender(lk_lock *l, const lk_acquisition_callbacks *callbacks);

/** For a lock with a partner: why the state of the partner refuses an acquire,
    or 0. */
int lk__rwlock_side_refusal(const lk_lock *l);

bool lk__lock_holds(const lk_lock *l);
/** Whether this process is a forked child of the one that made the client. */
bool lk__lock_is_forked(const lk_lock *l);
/** Start a timer of the lock, to fire `in_ms` from now. */
void lk__lock_start_timer(lk_lock *l, lk_timer *t, int64_t in_ms);
/** Stop an acquisition. It invokes no callback any more. */
void lk__lock_stop_acquisition(lk_acquisition *a);
/** Stop an acquisition. Its callback `gone` is invoked later. */
void lk__lock_stop_acquisition_and_report(lk_acquisition *a);
/** Stop the acquire under way, and complete it with `err`. */
void lk__lock_give_up(lk_lock *l, int err);
/** Set the acquisition of the lock to NULL, and return the former one. */
lk_acquisition *lk__lock_detach_acquisition(lk_lock *l);
/** The callbacks by which an acquisition reports to its lock. */
extern const lk_acquisition_callbacks lk__lock_callbacks;

/* The callbacks of a lock's user. If a callback frees the handle, the handle is
   destroyed when the outermost callback has returned. */

/** Called before and after code that invokes callbacks of the user. In between,
    a lock that a callback frees stays in memory; lk__lock_leave() may destroy
    it. */
void lk__lock_enter(lk_lock *l);
void lk__lock_leave(lk_lock *l);
/** Make `completion` pending. */
void lk__completion_set(lk_completion *completion, lk_lock_cb done, void *arg);
/** Invoke the callback with `err` if `completion` is pending. */
void lk__lock_complete(lk_lock *l, lk_completion *completion, int err);
/** If the pending acquire is of a lock that was held already, complete it. */
void lk__lock_complete_reentry(lk_lock *l, int err);
/** Complete the pending calls that need no reply of a server: an acquire of a
    lock that was held already, with `acquire_err`, and a release that only
    reduced the count. */
void lk__lock_complete_without_reply(lk_lock *l, int acquire_err);
/** Complete the verify under way with `err`, and ignore its reply. */
void lk__lock_complete_verify(lk_lock *l, int err);

#endif
