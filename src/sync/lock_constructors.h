/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_CONSTRUCTORS_H
#define LK_SYNC_LOCK_CONSTRUCTORS_H

#include "sync/lock.h"

/** Whether the recipe accepts the options: 0, or its error; then the lock is
    freed. */
int lk__sync_lock_check_options(lk_sync_lock **l);

#endif
