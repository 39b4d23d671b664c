/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_DESTRUCTOR_H
#define LK_SYNC_LOCK_DESTRUCTOR_H

#include "sync/lock.h"

/** End the lock owners of all threads: calls that wait for the lock end, and
    locks that are held are released. false: nothing was done, because this
    thread may not wait for the thread of the handle. */
bool lk__sync_lock_end_owners(lk_sync_lock *l);

#endif
