/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_DESTRUCTOR_H
#define LK_SYNC_LOCK_DESTRUCTOR_H

#include "sync/lock.h"

/** End all calls that wait for it, and release it for all threads. false: this
    thread may not wait. */
bool lk__sync_lock_end_threads(lk_sync_lock *l);

#endif
