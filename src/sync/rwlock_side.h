/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_RWLOCK_SIDE_H
#define LK_SYNC_RWLOCK_SIDE_H

#include "sync/thread_lock.h"

/** Make the lk_lock of a thread lock that is a side of a read-write lock. */
int lk__rwlock_side_make(lk_thread_lock *h);
/** Free it. `recipe` is what h->recipe was. */
void lk__rwlock_side_free(lk_thread_lock *h, lk_lock *recipe);

#endif
