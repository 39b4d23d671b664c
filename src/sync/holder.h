/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_HOLDER_H
#define LK_SYNC_HOLDER_H

#include "sync/blocking_call.h"

/** What the two sides of a read-write lock have in common that one thread wants
    or holds. Of the handle's thread. */
typedef struct lk_thread_rwlock {
  lk_rwlock *rw;
  struct lk_holder *sides[2]; /**< read and write; NULL: not wanted */
} lk_thread_rwlock;

/**
 * A thread that wants a lock, holds it, or has lost it and not released. The
 * thread finds it in a list of its own (lk_sync_client.held), which nobody else
 * touches; the handle's thread keeps all of them in lk_sync_client.holders.
 */
typedef struct lk_holder {
  lk_sync_client *client;
  _Atomic(lk_sync_lock *) lock; /**< NULL: it was freed */

  /* Of its thread. */
  struct lk_holder *next; /**< the next of the same thread */
  size_t count;           /**< 0: it does not hold yet */
  lk_blocking_call errand; /**< what it waits for */
  lk_task retire;         /**< gives it back */

  /* Published by the handle's thread; see lk__holder_ok(). */
  _Atomic(int64_t) sure_ms;  /**< the lease; INT64_MIN: unsure, or not held */
  _Atomic(int64_t) until_ms; /**< the lease; INT64_MIN: not held */
  uint64_t token;            /**< of the grant; set once */
  uint64_t turn;             /**< likewise */

  /* Of the handle's thread. */
  lk_link link; /**< in lk_sync_client.holders */
  lk_lock *handle;
  lk_thread_rwlock *pair; /**< of a side: its handle belongs to it */
  /** A side: whoever of this thread has the other one, as long as this thread
      waits in an acquire. */
  struct lk_holder *partner;
  bool once;      /**< acquire only what is free */
  bool verifying; /**< its thread waits for a verify */
  bool waiting;   /**< its thread waits until it holds for certain, or lost */
  bool doubt;     /**< of what was held; false before the grant */
  int cut_err;    /**< why its errand was cut short, or 0 */

  int fd; /**< readable in doubt; -1: none. Under the client's mutex */
} lk_holder;

/** Which of the recipes it is. */
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
  size_t inside; /**< calls that may wait; under the client's mutex */
  bool freed;    /**< of the handle's thread */
  lk_kind kind;
  char *path;
  char *data;
  lk_semaphore_config permits;  /**< SEMAPHORE */
  char *limit_path;             /**< likewise, or NULL */
  lk_semaphore_history learned; /**< likewise; of the handle's thread */
  lk_single_config single;      /**< SINGLE */
  lk_multilock_config together; /**< MULTILOCK */
  lk_multilock_member *members; /**< likewise, `count` */
  size_t count;
  lk_sync_lock *partner; /**< READ, WRITE: the other side */
  lk_acls *acl;
  lk_acls *parent_acl;
  char *prefix;       /**< or NULL */
  lk_lock_config how; /**< of each lk_lock, but for its `arg` */
  void (*on_event)(lk_sync_lock *l, const lk_lock_event *event, uint64_t token,
                   void *arg);
  void *arg;
};

/** NULL, if it is NULL. */
static inline lk_sync_client *lk__sync_lock_client(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->client;
}

/** Whether it does not hold, be it not yet or not any more. */
static inline bool lk__holder_is_lost(const lk_holder *h)
{
  return atomic_load(&h->until_ms) == INT64_MIN;
}

/* ---- for the holder's thread --------------------------------------------- */

/** This thread's holder of `l`, or NULL. */
lk_holder *lk__holder_find(const lk_sync_lock *l);
/** Make this thread one; NULL: no memory. */
lk_holder *lk__holder_new(lk_sync_lock *l);
/** This thread is it no more; what else there was goes with it. */
void lk__holder_release(lk_holder *h);
/** The same, if the handle's thread does not know it. */
void lk__holder_delete(lk_holder *h);
/** A thread ends; `first` of its list. */
void lk__holders_thread_ended(void *first);

/* ---- the kinds, kinds.c -------------------------------------------------- */

/** What constructors share: all but what a kind has besides. */
int lk__sync_lock_make(lk_sync_lock **out, lk_sync_client *c, lk_kind kind,
                       const char *path, const lk_sync_lock_config *config);
/** Whether the recipe takes what it was given: 0, or its error; then the lock
    is gone. */
int lk__sync_lock_check_options(lk_sync_lock **l);
/** Without a look at who holds. */
void lk__sync_lock_destroy(lk_sync_lock *l);
/** Nobody holds it, or waits for it, any more. false: not from here. */
bool lk__sync_lock_end_holders(lk_sync_lock *l);

/* ---- for the handle's thread --------------------------------------------- */

/** Make its lk_lock: 0, or what the recipe says. */
int lk__holder_make_lock(lk_holder *h);
/** The same for a side of a read-write lock, and giving it back: rwlock.c. */
int lk__rwlock_side_make_lock(lk_holder *h);
void lk__rwlock_side_free_lock(lk_holder *h, lk_lock *handle);

/** For lk_lock_config.on_event; `arg` is the holder. */
void lk__holder_on_event(lk_lock *l, const lk_lock_event *event, void *arg);
/** The lease, and whether it is unsure, as its lk_lock says. */
void lk__holder_publish(lk_holder *h);
void lk__holders_publish(lk_sync_client *c);
/** Give its lk_lock back, which ends its errand. It may be gone then. */
void lk__holder_free_lock(lk_holder *h);
/** It was published: end the wait of its thread, if that is decided. */
void lk__holder_check_wait(lk_holder *h);
/** Take it out, before its errand ends and its thread forgets it. */
void lk__holder_remove(lk_holder *h);
/** The lock is not held any more. */
void lk__holder_set_lost(lk_holder *h);
/** All locks are lost: the client is closed. */
void lk__holders_close(lk_sync_client *c);
/** Once that thread has ended: what was never released. */
void lk__holders_free(lk_sync_client *c);

#endif
