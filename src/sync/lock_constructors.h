/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_CONSTRUCTORS_H
#define LK_SYNC_LOCK_CONSTRUCTORS_H

#include "sync/lock.h"

/** Have the recipe check the options of `*l`. Returns 0, or the error of the
    recipe. After an error the lock is freed, and `*l` is NULL. */
int lk__sync_lock_check_or_destroy(lk_sync_lock **l);

#endif
