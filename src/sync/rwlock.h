/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_RWLOCK_H
#define LK_SYNC_RWLOCK_H

/**
 * @file
 * A read-write lock for threads: one lk_sync_lock for each side, and one
 * lk_rwlock for each thread.
 */

#include "sync/lock_owner.h"

/** Make the lk_lock of a lock owner that is a side of a read-write lock. */
int lk__rwlock_side_make(lk_lock_owner *owner);
/** Free the lk_lock of such a lock owner. `inner` is the value that
    `owner->inner` had before it was set to NULL. */
void lk__rwlock_side_free(lk_lock_owner *owner, lk_lock *inner);

#endif
