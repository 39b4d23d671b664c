/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SEMAPHORE_H
#define LK_SEMAPHORE_H

/**
 * @file
 * A fair semaphore: Curator's InterProcessSemaphoreV2 on the same znodes, and
 * with one permit its InterProcessSemaphoreMutex, a mutex that is not
 * re-entrant. Below the path are two containers: a queue of mutexes, `locks`,
 * and the permits that are held, `leases`. The first contender of the queue
 * waits until enough permits are free, takes them all at once, and leaves the
 * queue.
 *
 * Without contention an acquisition costs one round trip: queue node and permit
 * nodes are created together. If the queue node has predecessors, the permit
 * nodes are deleted at once. After three such failures in a row a handle
 * creates the queue node first, until it finds the queue empty.
 *
 * The result is an lk_lock, so <latchkey/lock.h> says how it is acquired, held,
 * lost and released. What differs:
 *   - a handle holds its permits once: acquiring again while it holds them is
 *     refused with LK_ERR_DEADLOCK; another handle may take other permits;
 *   - when one permit is lost, the whole lock is lost: the other permits are
 *     released;
 *   - the token orders the grants, but a resource must not refuse a smaller
 *     one: there are several holders at a time;
 *   - LK_LOCK_EVENT_WAITING with position 1 and no node: the handle is the
 *     first of the queue, and too few permits are free.
 *
 * With `layout` LK_LAYOUT_KAZOO it is kazoo's Semaphore. Permits are children
 * of the path with names of 32 digits, and the queue is kazoo's lock at the
 * path followed by "-__lock__". The data of the path are the number of permits
 * in decimal, and all directories are persistent nodes. The number is written
 * when the node is created, and read by each acquisition. A different number
 * ends the acquisition with LK_ERR_OTHER_LIMIT; data that are no number are
 * ignored, as by kazoo. Everything else is as above: several permits at once,
 * one round trip, tokens. A kazoo client takes one permit, and waits in the
 * same queue.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options beside those of a lock. Set `size`. */
typedef struct lk_semaphore_config {
  size_t size; /**< sizeof(lk_semaphore_config) */
  /** The number of permits, 1 to 1,000,000. All clients must set the same
      number, or use `limit_path`. */
  int32_t permits;
  int32_t take; /**< permits to acquire at once, at most 1,000. 0: 1 */
  /** The node that holds the number of permits, as Curator's SharedCount writes
      it (four bytes, big-endian). If it is missing, it is created with
      `permits`, but not its parent. When the number grows, waiters get the new
      permits; when it shrinks, holders keep theirs. NULL: `permits` is the
      number. Refused with kazoo's layout, where the path itself holds a number
      that does not change. */
  const char *limit_path;
} lk_semaphore_config;

/**
 * Make a handle for the semaphore at `path`. Everything but `client` is copied.
 *
 * An acquisition also ends with the server's error if the node at `limit_path`
 * is missing and cannot be created (LK_ERR_NO_NODE: its parent is missing, too;
 * LK_ERR_NO_AUTH, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, LK_ERR_INVALID_ACL,
 * LK_ERR_QUOTA_EXCEEDED), and with LK_ERR_MARSHALLING if its data are not four
 * bytes. In kazoo's layout it also ends with LK_ERR_OTHER_LIMIT, and with
 * LK_ERR_NO_AUTH if the client may not read the path.
 *
 * @return as lk_lock_new(); LK_ERR_BAD_ARGUMENT also where `take` is more than
 *         `permits` and there is no `limit_path`, for `limit_path` in kazoo's
 *         layout, and for layouts other than Curator's and kazoo's.
 */
LK_API int lk_semaphore_new(lk_lock **out, lk_client *client, const char *path,
                            const lk_lock_config *config,
                            const lk_semaphore_config *options);

/** true: `name` is the name of a permit node in this layout. Permits are below
    "leases" in Curator's layout, and children of the path in kazoo's. `number`:
    the sequence number of Curator's, by which permits are ordered; 0 of
    kazoo's, which have none. */
LK_API bool lk_layout_is_permit(lk_layout layout, lk_bytes name,
                                int64_t *number);

#ifdef __cplusplus
}
#endif
#endif
