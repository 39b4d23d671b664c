/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_H
#define LK_SYNC_LOCK_H

/**
 * @file
 * A lock for threads: one lk_sync_lock for all threads, with copies of its
 * options.
 */

#include "sync/call.h"

/** The kind of a lock. */
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
  size_t calls_inside; /**< calls of this lock that have entered and not left;
                            under the client's mutex */
  bool freeing;        /**< it is being freed; for the thread of the handle */
  lk_kind kind;
  char *path;

  /* Options of one kind of locks; zeros in the other kinds. */
  lk_semaphore_config semaphore;
  char *limit_path; /**< the copy that `semaphore` refers to, or NULL */
  /** Of all threads, if the caller has named no other. For the thread of the
      handle. */
  lk_semaphore_history history;
  lk_single_config single;
  lk_multilock_config multilock;
  lk_multilock_member *members; /**< of a multi-lock */
  size_t member_count;
  lk_sync_lock *partner; /**< of a side of a read-write lock: the other side */

  /** For each lk_lock. lock_owner.c sets the callback and its `arg`. The next
     four members are copies for `config`; NULL: the option is not set. */
  lk_lock_config config;
  char *data;
  lk_acls *acl;
  lk_acls *parent_acl;
  char *prefix;

  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, uint64_t token,
                   void *arg);
  void *arg; /**< for on_event */
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

/** Check the options of `*l`, as its lk_lock would. Returns 0, or why they are
    refused. After an error the lock is freed, and `*l` is NULL. */
int lk__sync_lock_check_or_destroy(lk_sync_lock **l);

#endif
