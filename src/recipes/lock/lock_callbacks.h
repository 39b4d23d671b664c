/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_CALLBACKS_H
#define LK_RECIPES_LOCK_LOCK_CALLBACKS_H

/**
 * @file
 * The callbacks of a lock's user. They are invoked in lock_callbacks.c alone.
 * If a callback frees the handle, the handle is destroyed when the outermost
 * callback has returned.
 */

#include "recipes/lock/lock.h"

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

/** Report an event to the user. */
void lk__lock_notify(lk_lock *l, const lk_lock_event *event);
/** Free a handle that has no acquisition. */
void lk__lock_destroy(lk_lock *l);

#endif
