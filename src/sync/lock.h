/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_LOCK_H
#define LK_SYNC_LOCK_H

/**
 * @file
 * A lock for threads. The handle is the owner: it has one lk_lock, whose state
 * is stored for all threads.
 */

#include "net/wakeup.h"
#include "sync/call.h"

/** What a handle is used for. */
typedef enum lk_lock_use {
  LK_USE_NONE,
  LK_USE_ACQUIRING, /**< a thread waits in an acquire */
  LK_USE_HOLDING,   /**< the handle holds */
  LK_USE_LOST,      /**< the lock was lost, and not released yet */
  LK_USE_RELEASING, /**< a thread waits until the own node is deleted */
  LK_USE_CANDIDATE  /**< a candidate uses the lk_lock */
} lk_lock_use;

struct lk_sync_lock {
  lk_sync_client *client;
  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, void *arg);
  void *arg;                /**< for on_event */
  lk_sync_lock *other_side; /**< of a read-write lock; or NULL */
  bool is_semaphore;
  lk_task release; /**< releases `inner`, for lk_sync_lock_release() */

  /* Under the client's mutex. */
  size_t calls_inside; /**< calls of this lock that have entered and not left */
  uint64_t thread;     /**< lk__sync_thread() of the acquire; while in use */
  lk_flag_fd doubt_fd; /**< of lk_sync_lock_fd(); set while there is a doubt */

  /* Written under the client's mutex, read by all threads. */
  atomic_int use;                     /**< lk_lock_use */
  atomic_size_t count;                /**< acquires without a release */
  _Atomic(int64_t) sure_until_ms;     /**< the lease deadline; INT64_MIN: it is
                                           unsure, or not held */
  _Atomic(int64_t) lease_deadline_ms; /**< INT64_MIN: it is not held */
  _Atomic(uint64_t) token;            /**< 0: it is not held */

  /* For the thread of the handle. */
  lk_lock *inner; /**< NULL: it was freed */
  lk_link link;   /**< in lk_sync_client.locks, from the grant to the release */
  lk_link waiting; /**< of lk_wait, in lk_sync_lock_wait_certain() */
  lk_blocking_call *verifying; /**< waits in lk_sync_lock_verify(); or NULL */
};

/** The client of the lock; NULL if `l` is NULL. */
static inline lk_sync_client *lk__sync_lock_client(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->client;
}

/** Copy the caller's options. Returns 0, or why they are refused, which is
    logged. */
int lk__sync_lock_config_copy(lk_sync_client *c, lk_lock_config *out,
                              const lk_lock_config *config);
/** Initialise a lock that is zeroed. Its `inner` is made by the caller. */
void lk__sync_lock_init(lk_sync_lock *l, lk_sync_client *c,
                        lk_sync_lock_event_cb on_event, void *arg);
/** Run `make` on the thread of the handle, also if that is this thread. Returns
    the error with which `make` completes its call, or LK_ERR_CLOSED. */
int lk__sync_lock_make(lk_blocking_call *b, lk_sync_client *c,
                       void (*make)(lk_blocking_call *b));
/** lk__sync_enter() for a call of the lock; LK_ERR_BAD_ARGUMENT: `l` is NULL.
    The lock is not freed before lk__sync_lock_leave(). */
int lk__sync_lock_enter(lk_sync_lock *l, int *cancel_state);
void lk__sync_lock_leave(lk_sync_lock *l, int cancel_state);
/** How an acquire deals with a lock that another client holds, and with a lost
    connection. */
typedef enum lk_acquire_way {
  LK_ACQUIRE_WAIT,         /**< waits for both */
  LK_ACQUIRE_TRY,          /**< waits for a connection alone */
  LK_ACQUIRE_TRY_CONNECTED /**< waits for neither */
} lk_acquire_way;

/** Acquire, by the thread with the number `thread`. */
int lk__sync_lock_acquire(lk_sync_lock *l, uint64_t thread,
                          const lk_sync_call *call, lk_acquire_way way);
/** Whether it is held by an acquire, or lost; `*thread` gets the number of the
    thread of that acquire. */
bool lk__sync_lock_is_acquired(lk_sync_lock *l, uint64_t *thread);
/** Begin to use the lock for a candidate. false: it is in use, or the other
    side is. */
bool lk__sync_lock_begin_candidate(lk_sync_lock *l);
/** The use has ended. */
void lk__sync_lock_end_use(lk_sync_lock *l);

/* ---- for the thread of the handle ---------------------------------------- */

/** Remove `inner` and return it, for the caller to free. */
lk_lock *lk__sync_lock_remove(lk_sync_lock *l);
/** LK_ERR_CLOSED: the client is being freed, and no thread could free a lock
    that is made now. Else 0. */
int lk__sync_lock_refusal(lk_sync_client *c);
/** Complete the calls of lk_sync_lock_wait_certain() that are over, all of them
    if `inner` was freed. A caller may free its call then. */
void lk__sync_lock_check_waits(lk_sync_lock *l);
/** An event of `inner`. */
void lk__sync_lock_on_event(lk_sync_lock *l, const lk_lock_event *event);
/** A reply has moved the lease deadline. */
void lk__sync_locks_publish(lk_sync_client *c);

/** The lock is freed: wait until all its calls have left, and close its
    descriptor. */
void lk__sync_lock_deinit(lk_sync_lock *l);

#endif
