/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_THREAD_LOCK_H
#define LK_SYNC_THREAD_LOCK_H

#include "sync/blocking_call.h"

/** The read-write lock of one thread, which has two sides. For the thread of
    the handle. */
typedef struct lk_thread_rwlock {
  lk_rwlock *rw;
  struct lk_thread_lock *sides[2]; /**< read, write; NULL: this thread does not
                                 use that side */
} lk_thread_rwlock;

/**
 * What one thread has of a lock: it waits for it, holds it, or has lost it and
 * not released it yet. The thread finds it in a list that no other thread uses
 * (lk_sync_client.held). The thread of the handle has all of them in
 * lk_sync_client.thread_locks.
 */
typedef struct lk_thread_lock {
  lk_sync_client *client;
  _Atomic(lk_sync_lock *) lock; /**< NULL: it was freed */

  /* For the thread that holds. */
  struct lk_thread_lock *next; /**< the next of the same thread */
  size_t count;                /**< of acquires; 0: it does not hold yet */
  lk_blocking_call call;       /**< that it waits in */
  lk_task retire;              /**< releases the lock and frees this */

  /* Written by the thread of the handle, read by the other: lk_sync_lock_ok().
   */
  _Atomic(int64_t) sure_ms;  /**< the lease deadline; INT64_MIN: unsure, or not
                                held */
  _Atomic(int64_t) until_ms; /**< the lease deadline; INT64_MIN: not held */
  uint64_t token; /**< of the grant; set before the acquire completes */
  uint64_t turn;  /**< likewise */

  /* For the thread of the handle. */
  lk_link link; /**< in lk_sync_client.thread_locks */
  lk_lock *recipe;
  lk_thread_rwlock *pair; /**< of a side: `handle` belongs to it */
  /** Of a side: that of the other side in this thread, or NULL. Valid
      while this thread waits in an acquire. */
  struct lk_thread_lock *partner;
  bool once;         /**< lk_sync_lock_try() */
  bool verifying;    /**< its thread waits in lk_sync_lock_verify() */
  bool waiting;      /**< its thread waits in lk_sync_lock_wait() */
  bool doubt;        /**< the lock is unsure or lost; false before the grant */
  int interrupt_err; /**< why `call` was interrupted, or 0 */

  int fd; /**< lk_sync_lock_fd(), or -1; under the client's mutex */
} lk_thread_lock;

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
  char *data;
  lk_semaphore_config permits;  /**< SEMAPHORE */
  char *limit_path;             /**< likewise, or NULL */
  lk_semaphore_history learned; /**< likewise; for the thread of the handle */
  lk_single_config single;      /**< SINGLE */
  lk_multilock_config together; /**< MULTILOCK */
  lk_multilock_member *members; /**< likewise, `count` */
  size_t count;
  lk_sync_lock *partner; /**< READ, WRITE: the other side */
  lk_acls *acl;
  lk_acls *parent_acl;
  char *prefix;       /**< or NULL */
  lk_lock_config how; /**< of each lk_lock, except `arg` */
  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, uint64_t token,
                   void *arg);
  void *arg;
};

/** NULL if `l` is. */
static inline lk_sync_client *lk__sync_lock_client(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->client;
}

/** Whether it does not hold: not yet, or not any more. */
static inline bool lk__thread_lock_is_lost(const lk_thread_lock *h)
{
  return atomic_load(&h->until_ms) == INT64_MIN;
}

/* ---- for the thread that holds ------------------------------------------- */

/** The thread lock of `l` in this thread, or NULL. */
lk_thread_lock *lk__thread_lock_find(const lk_sync_lock *l);
/** Make one for this thread; NULL: no memory. */
lk_thread_lock *lk__thread_lock_new(lk_sync_lock *l);
/** Remove it from this thread, and have the lock released. It is freed by the
    thread of the handle. */
void lk__thread_lock_release(lk_thread_lock *h);
/** Remove it from this thread and free it. The thread of the handle must not
    have it any more. */
void lk__thread_lock_delete(lk_thread_lock *h);
/** The destructor of lk_sync_client.held: releases what an ending thread
    holds. `first` of its list. */
void lk__thread_locks_thread_ended(void *first);

/* ---- constructors: lock_new.c -------------------------------------------- */

/** Make a lock, without the options that only some kinds have. */
int lk__sync_lock_make(lk_sync_lock **out, lk_sync_client *c, lk_kind kind,
                       const char *path, const lk_sync_lock_config *config);
/** Whether the recipe accepts the options: 0, or its error; then the lock is
    freed. */
int lk__sync_lock_check_options(lk_sync_lock **l);
/** Free it. No thread may have a thread lock of it. */
void lk__sync_lock_destroy(lk_sync_lock *l);
/** End all calls that wait for it, and release it for all threads. false: this
    thread may not wait. */
bool lk__sync_lock_end_threads(lk_sync_lock *l);

/* ---- for the thread of the handle ---------------------------------------- */

/** Make its lk_lock: 0, or the error of the recipe. */
int lk__thread_lock_make_recipe(lk_thread_lock *h);
/** The same for a side of a read-write lock, and freeing it: rwlock.c. */
int lk__rwlock_side_make_lock(lk_thread_lock *h);
void lk__rwlock_side_free_lock(lk_thread_lock *h, lk_lock *handle);

/** For lk_lock_config.on_event; `arg` is the thread lock. */
void lk__thread_lock_on_event(lk_lock *l, const lk_lock_event *event,
                              void *arg);
/** Store the lease deadline, and whether the lock is unsure, for its thread. */
void lk__thread_lock_publish(lk_thread_lock *h);
void lk__thread_locks_publish(lk_sync_client *c);
/** Free its lk_lock, which completes its call. It may be freed by then. */
void lk__thread_lock_free_recipe(lk_thread_lock *h);
/** Complete lk_sync_lock_wait() of its thread, if the lock is held for certain
    or lost. */
void lk__thread_lock_check_wait(lk_thread_lock *h);
/** Remove it from lk_sync_client.thread_locks; before its call is completed,
   after which its thread may free it. */
void lk__thread_lock_remove(lk_thread_lock *h);
/** Store that the lock is not held any more. */
void lk__thread_lock_set_lost(lk_thread_lock *h);
/** All locks are lost, since the client is closed. */
void lk__thread_locks_close(lk_sync_client *c);
/** When the thread of the handle has ended: free the rest. */
void lk__thread_locks_free(lk_sync_client *c);

#endif
