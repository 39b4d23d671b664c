/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_LOCK_CALLBACKS_H
#define LK_RECIPES_LOCK_LOCK_CALLBACKS_H

/**
 * @file
 * The callbacks of a lock's user. They are invoked in this file alone, and the
 * handle that a callback frees is destroyed when the outermost one has
 * returned.
 */

#include "recipes/lock/lock.h"

/** Around all that calls the user: afterwards the lock may be freed. */
void lk__lock_enter(lk_lock *l);
void lk__lock_leave(lk_lock *l);
void lk__completion_set(lk_completion *w, lk_lock_cb done, void *arg);
/** Invoke the callback, if it is pending. */
void lk__lock_complete(lk_lock *l, lk_completion *w, int err);
/** Complete the acquire of a lock that was held already. */
void lk__lock_complete_reentry(lk_lock *l, int err);
/** Complete what needs no reply of a server: an acquire of a lock that is held,
    with `acquire_err`, and a release that only counts down. */
void lk__lock_complete_local(lk_lock *l, int acquire_err);
/** Complete the verify under way with `err`, and ignore its reply. */
void lk__lock_complete_verify(lk_lock *l, int err);

/** Report an event. */
void lk__lock_notify(lk_lock *l, const lk_lock_event *event);
/** Free a handle that has no acquisition. */
void lk__lock_destroy(lk_lock *l);

#endif
