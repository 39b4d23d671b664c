/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_MULTILOCK_H
#define LK_MULTILOCK_H

/**
 * @file
 * Several locks as one: all of them or none. Where nobody contends that costs
 * one round trip, however many there are: their nodes are made in one atomic
 * transaction. The result is an lk_lock, so <latchkey/lock.h> says how it is
 * acquired, held, lost and released; one deadline goes for the whole. Unlike
 * others it is lost as a whole when one of its nodes is: the rest is released.
 *
 * Nobody waits for one of its locks while it keeps a later one from others:
 * when a lock is held by somebody else, those after it are given back at once,
 * and are asked for again when it is granted. So no deadlock is possible among
 * users of multi-locks, nor with those who nest single locks in the same order
 * (Curator's InterProcessMultiLock takes them in the order of its list).
 *
 * Where a connection breaks before the transaction was answered, its nodes are
 * given back on the next one, and it queues anew for what it lacked: a single
 * lock would find its node and keep its place.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lk_multilock_side {
  LK_MULTILOCK_MUTEX, /**< as lk_lock_new() makes */
  LK_MULTILOCK_READ,  /**< a side of <latchkey/rwlock.h> */
  LK_MULTILOCK_WRITE
} lk_multilock_side;

typedef struct lk_multilock_member {
  const char *path;
  lk_multilock_side side;
} lk_multilock_member;

/** Options beside those of a lock. Set `size`, leave at 0 what should be as
    usual. */
typedef struct lk_multilock_config {
  size_t size; /**< sizeof(lk_multilock_config) */
  /** Take the locks in the order given. Otherwise in the order of their paths'
      bytes, which is the same for everybody. For peers with another order. */
  bool keep_order;
} lk_multilock_config;

/**
 * Make a handle for `count` locks, 1 to 1,000; all is copied. Two with the same
 * path and side are one. `config` has the options of every member, `options`
 * those of the whole; NULL: as usual.
 *
 * @return as lk_lock_new(); LK_ERR_BAD_ARGUMENT also for a path with two sides.
 */
LK_API int lk_multilock_new(lk_lock **out, lk_client *client,
                            const lk_multilock_member *members, size_t count,
                            const lk_lock_config *config,
                            const lk_multilock_config *options);

/** The fencing token for what the member at `path` protects; 0: not held, or no
    such member. They are all the same unless it had to wait; lk_lock_token() is
    the largest. */
LK_API uint64_t lk_multilock_token(const lk_lock *l, const char *path);

/** The path of our node in the queue of the member at `path`, as
    lk_lock_node(), which gives that of the first member in the order of the
    paths' bytes; NULL: it is not known to exist, or no such member. Borrowed
    until the next event. */
LK_API const char *lk_multilock_node(const lk_lock *l, const char *path);

#ifdef __cplusplus
}
#endif
#endif
