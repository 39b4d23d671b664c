/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_RECIPE_H
#define LK_SYNC_RECIPE_H

#include "sync/lock_owner.h"

/** An lk_lock that belongs to no thread. */
typedef struct lk_recipe_lock {
  lk_lock *lock; /**< NULL: none */
  lk_rwlock *rw; /**< the read-write lock that `lock` is a side of, or NULL */
} lk_recipe_lock;

/** Make an lk_lock with the recipe of `l` and the options `config`. Returns 0,
    or the error of the recipe. */
int lk__recipe_lock_new(lk_recipe_lock *out, const lk_sync_lock *l,
                        const lk_lock_config *config);
void lk__recipe_lock_free(lk_recipe_lock *lock);

/** Make the lk_lock of a lock owner. Returns 0, or the error of the recipe. */
int lk__recipe_make(lk_lock_owner *owner);
/** Free the lk_lock of a lock owner. That completes the call of `owner`, whose
    thread may then free `owner`. */
void lk__recipe_free(lk_lock_owner *owner);
/** Have the recipe check the options of `l`, by making an lk_lock and freeing
    it. Returns 0, or the error of the recipe. */
int lk__recipe_check_options(const lk_sync_lock *l);

#endif
