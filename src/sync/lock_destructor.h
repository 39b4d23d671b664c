/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_DESTRUCTOR_H
#define LK_SYNC_LOCK_DESTRUCTOR_H

#include "sync/lock.h"

/** End all calls that wait for the lock, and release the lock for all threads.
    false: this thread may not wait for that, and nothing was done. */
bool lk__sync_lock_end_threads(lk_sync_lock *l);

#endif
