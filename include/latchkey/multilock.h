/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_MULTILOCK_H
#define LK_MULTILOCK_H

/**
 * @file
 * Several locks as one: all of them are held, or none. Without contention an
 * acquisition costs one round trip for any number of locks: all contender nodes
 * are created in one transaction. The result is an lk_lock, so
 * <latchkey/lock.h> says how it is acquired, held, lost and released. One
 * deadline applies to the whole. When one node is lost, the whole multi-lock is
 * lost, and the other locks are released.
 *
 * While a multi-lock waits for one of its parts, it holds no later part.
 * When a part has to wait, the nodes of later parts are deleted at once;
 * they are created again when that part is granted. So multi-locks cannot
 * deadlock with each other, nor with clients that nest single locks in the same
 * order (Curator's InterProcessMultiLock uses the order of its list).
 *
 * If a connection is lost before the reply to the transaction, its nodes are
 * deleted on the next connection, and new ones are created at the end of the
 * queues. A single lock would recover its own node and keep its position.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A part of a multi-lock is a mutex or one side of a read-write lock. Other
    values are refused with LK_ERR_BAD_ARGUMENT. */
typedef enum lk_multilock_side {
  LK_MULTILOCK_MUTEX = 0, /**< the lock of lk_lock_new() */
  LK_MULTILOCK_READ = 1,  /**< a side of <latchkey/rwlock.h> */
  LK_MULTILOCK_WRITE = 2
} lk_multilock_side;

typedef struct lk_multilock_part {
  const char *path;
  lk_multilock_side side;
} lk_multilock_part;

/** Options beside those of a lock. Set `size`; 0 selects the default. */
typedef struct lk_multilock_config {
  size_t size; /**< sizeof(lk_multilock_config) */
  /** Acquire the parts in the given order, for peers that use that order.
      Otherwise in the byte order of their paths, which is the same in all
      clients. */
  bool keep_order;
  int32_t unused; /**< no option; fills the struct */
} lk_multilock_config;

/**
 * Make a handle for `count` locks, 1 to 1,000; all arguments are copied.
 * Parts with equal path and side become one. `config` has the options of each
 * part, `options` those of the whole; NULL selects the defaults.
 *
 * @return as lk_lock_new(); LK_ERR_BAD_ARGUMENT also for a path with two sides.
 */
LK_API int lk_multilock_new(lk_lock **out, lk_client *client,
                            const lk_multilock_part *parts, size_t count,
                            const lk_lock_config *config,
                            const lk_multilock_config *options);

/** The fencing token of the part at `path`; 0: not held, or no such part.
    The tokens of all parts are equal unless the multi-lock had to wait;
    lk_lock_token() returns the largest. */
LK_API uint64_t lk_multilock_token(const lk_lock *l, const char *path);

/** The path of the own node in the queue of the part at `path`. NULL: it is
    not known to exist, or no such part. lk_lock_node() returns that of the
    first part in the byte order of the paths. Borrowed until the next
    event. */
LK_API const char *lk_multilock_node(const lk_lock *l, const char *path);

#ifdef __cplusplus
}
#endif
#endif
