/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_RECIPE_H
#define LK_SYNC_RECIPE_H

#include "sync/thread_lock.h"

/** Make the lk_lock of a thread lock: 0, or the error of the recipe. */
int lk__recipe_make(lk_thread_lock *h);
/** Free it, which completes the call of `h`; its thread may then free `h`. */
void lk__recipe_free(lk_thread_lock *h);
/** Whether the recipe accepts the options of `l`: 0, or its error. */
int lk__recipe_try(const lk_sync_lock *l);

#endif
