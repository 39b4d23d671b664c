/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_OWNER_H
#define LK_SYNC_LOCK_OWNER_H

/**
 * @file
 * The owner of a lock: one thread, the lk_lock of that thread, and its state.
 */

#include "net/wakeup.h"
#include "sync/call.h"
#include "sync/lock.h"

/* Values of deadlines in lk_lock_owner that have passed at any time. */
#define LK_NOT_SURE INT64_MIN /* the lock is unsure, or not held */
#define LK_NOT_HELD INT64_MIN

/**
 * One thread as an owner of a lock. The thread waits for the lock, holds it, or
 * has lost it and not released it yet. The thread finds its lock owners in a
 * list that no other thread uses (lk_sync_client.owners_key). The thread of the
 * handle has the lock owners of all threads in lk_sync_client.lock_owners.
 */
typedef struct lk_lock_owner {
  lk_sync_client *client;
  _Atomic(lk_sync_lock *) lock; /**< NULL: the lock was freed */

  /* For the owning thread. */
  struct lk_lock_owner *next; /**< the next lock owner of the same thread */
  size_t count;               /**< acquires without a release; 0: it waits */
  lk_blocking_call call;      /**< the call in which the thread waits */
  lk_task retire;             /**< releases the lock and frees this struct */

  /* Written by the thread of the handle, read by the owning thread. */
  /** The lease deadline, or LK_NOT_SURE. */
  _Atomic(int64_t) sure_until_ms;
  /** The lease deadline, or LK_NOT_HELD. */
  _Atomic(int64_t) lease_deadline_ms;
  /* Set before the acquire completes. */
  uint64_t token; /**< lk_lock_token() of the grant */

  /* For the thread of the handle. */
  lk_link link;   /**< in lk_sync_client.lock_owners */
  lk_lock *inner; /**< the lock of this thread; NULL: it was freed */
  /** The read-write lock whose side `inner` is; NULL: `inner` is no side. */
  struct lk_thread_rwlock *thread_rwlock;
  /** For a side of a read-write lock: the lock owner of the other side in this
      thread, or NULL. Valid while this thread waits in an acquire. */
  struct lk_lock_owner *partner;
  int64_t acquire_timeout_ms; /**< for lk_lock_acquire() */
  bool verifying;             /**< its thread waits in lk_sync_lock_verify() */
  bool awaits_certainty;      /**< its thread waits in
                                   lk_sync_lock_wait_certain() */
  bool doubt;                 /**< the lock is unsure or lost; false before the
                                   grant */
  int interrupt_err;          /**< why `call` was interrupted, or 0 */

  /** Of lk_sync_lock_fd(), set while there is a `doubt`. Opened by the first
      call. Under the client's mutex. */
  lk_flag_fd doubt_fd;
} lk_lock_owner;

/** The lock owner whose call is `b`. */
static inline lk_lock_owner *lk__lock_owner_of(lk_blocking_call *b)
{
  return LK_OWNER(b, lk_lock_owner, call);
}

/** Whether the thread does not hold the lock any more, or not yet. */
static inline bool lk__lock_owner_is_lost(const lk_lock_owner *owner)
{
  return atomic_load(&owner->lease_deadline_ms) == LK_NOT_HELD;
}

/* ---- for the thread of the handle ---------------------------------------- */

/** For lk_lock_config.on_event; `arg` is the lock owner. */
void lk__lock_owner_on_event(lk_lock *l, const lk_lock_event *event, void *arg);
/** Store the lease deadline, and whether the lock is unsure, for its thread. */
void lk__lock_owner_publish(lk_lock_owner *owner);
/** Store that the lock is not held any more. */
void lk__lock_owner_set_lost(lk_lock_owner *owner);
/** Complete lk_sync_lock_wait_certain() of its thread, if the lock is now held
    for certain or lost. */
void lk__lock_owner_check_wait(lk_lock_owner *owner);
/** Complete lk_sync_lock_wait_certain() of its thread with `err`. */
void lk__lock_owner_end_wait(lk_lock_owner *owner, int err);

/** An lk_lock that belongs to no thread. */
typedef struct lk_inner_lock {
  lk_lock *lock; /**< NULL: none */
  lk_rwlock *rw; /**< the read-write lock that `lock` is a side of, or NULL */
} lk_inner_lock;

/** Make an lk_lock of the kind of `l` with the options `config`. Returns 0, or
    the error of its constructor. */
int lk__inner_lock_new(lk_inner_lock *out, const lk_sync_lock *l,
                       const lk_lock_config *config);
void lk__inner_lock_free(lk_inner_lock *lock);

/** Make the lk_lock of a lock owner. Returns 0, or the error of its
    constructor. */
int lk__lock_owner_make_inner(lk_lock_owner *owner);
/** Free the lk_lock of a lock owner. That completes the call of `owner`, whose
    thread may then free `owner`. */
void lk__lock_owner_free_inner(lk_lock_owner *owner);
/** Check the options of `l`, by making an lk_lock and freeing it. Returns 0, or
    the error of its constructor. */
int lk__inner_lock_check_options(const lk_sync_lock *l);

/** End the lock owners of all threads: calls that wait for the lock end, and
    locks that are held are released. false: nothing was done, because this
    thread may not wait for the thread of the handle. */
bool lk__sync_lock_end_owners(lk_sync_lock *l);

/* ---- of one thread ------------------------------------------------------- */

/** The lock owner of `l` in this thread, or NULL. */
lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l);
/** Make a lock owner of `l` for this thread. NULL: no memory. */
lk_lock_owner *lk__lock_owner_new(lk_sync_lock *l);
/** Remove a lock owner from this thread. The thread of the handle releases the
    lock and frees the lock owner. */
void lk__lock_owner_release(lk_lock_owner *owner);
/** Remove a lock owner from this thread and free it. The thread of the handle
    must have removed it before. */
void lk__lock_owner_delete(lk_lock_owner *owner);
/** The destructor of lk_sync_client.owners_key: releases what an ending thread
    holds. `first`: the first lock owner of the thread's list. */
void lk__lock_owners_thread_ended(void *first);

/* ---- of the handle, for its thread --------------------------------------- */

/** Remove a lock owner from lk_sync_client.lock_owners. To be called before its
    call is completed, since its thread may free it after that. */
void lk__lock_owner_remove(lk_lock_owner *owner);
/** Call lk__lock_owner_publish() for each lock owner that holds. */
void lk__lock_owners_publish(lk_sync_client *c);
/** The client is being closed: all locks are lost. */
void lk__lock_owners_close(lk_sync_client *c);
/** The thread of the handle has ended: free the lock owners that are left. */
void lk__lock_owners_free(lk_sync_client *c);

#endif
