/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_H
#define LK_SYNC_LOCK_H

#include "sync/handle.h"

/** The recipe of a lock. */
typedef enum lk_kind {
  LK_KIND_MUTEX,
  LK_KIND_SEMAPHORE,
  LK_KIND_MULTILOCK,
  LK_KIND_SINGLE,
  LK_KIND_READ,
  LK_KIND_WRITE
} lk_kind;

struct lk_sync_lock {
  lk_sync_client *client;
  size_t inside; /**< calls that have entered; under the client's mutex */
  bool freed;    /**< for the thread of the handle */
  lk_kind kind;
  char *path;
  char *data;                    /**< of the contender node; or NULL */
  lk_semaphore_config semaphore; /**< SEMAPHORE */
  char *limit_path;              /**< SEMAPHORE; or NULL */
  lk_semaphore_history history;  /**< SEMAPHORE; for the thread of the handle */
  lk_single_config single;       /**< SINGLE */
  lk_multilock_config multilock; /**< MULTILOCK */
  lk_multilock_member *members;  /**< MULTILOCK: `count` members */
  size_t count;
  lk_sync_lock *partner; /**< READ, WRITE: the other side */
  lk_acls *acl;          /**< or NULL */
  lk_acls *parent_acl;   /**< or NULL */
  char *prefix;          /**< or NULL */
  lk_lock_config config; /**< for each lk_lock; callback and `arg` are set by
                              recipe.c */
  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, uint64_t token,
                   void *arg);
  void *arg;
};

/** The client of the lock; NULL if `l` is NULL. */
static inline lk_sync_client *lk__sync_lock_client(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->client;
}

/** Make a lock. Options that only some kinds of locks have are not set. */
int lk__sync_lock_make(lk_sync_lock **out, lk_sync_client *c, lk_kind kind,
                       const char *path, const lk_sync_lock_config *config);
/** Free the lock. No thread may have a lock owner of it any more. */
void lk__sync_lock_destroy(lk_sync_lock *l);

/** lk__sync_enter() for a call of the lock; LK_ERR_BAD_ARGUMENT: `l` is NULL.
    The lock is not freed before lk__sync_lock_leave(). */
int lk__sync_lock_enter(lk_sync_lock *l, int *cancel_state);
void lk__sync_lock_leave(lk_sync_lock *l, int cancel_state);

#endif
