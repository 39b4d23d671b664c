/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SEMAPHORE_H
#define LK_SEMAPHORE_H

/**
 * @file
 * A fair semaphore: Curator's InterProcessSemaphoreV2 on the same znodes, and
 * with one permit its InterProcessSemaphoreMutex, a mutex that is not
 * re-entrant. Below the path are two containers: a queue of mutexes, `locks`,
 * and the permits that are held, `leases`. Who is first in the queue waits
 * until there are permits enough, takes them all at once, and leaves the queue.
 *
 * Where nobody contends that costs one round trip: a place in the queue and the
 * permits are asked for together, and the permits given back at once if
 * somebody is ahead. After three such failures in a row a handle asks for the
 * place first, until it meets an empty queue again.
 *
 * The result is an lk_lock, so <latchkey/lock.h> says how it is acquired, held,
 * lost and released. What differs:
 *   - a handle holds its permits once: acquiring again while it holds them is
 *     refused with LK_ERR_DEADLOCK; another handle may take others;
 *   - it is lost as a whole when one of its permits is: the rest is given back;
 *   - its token orders holders but does not exclude: several hold at a time;
 *   - LK_LOCK_EVENT_WAITING with position 1 and no node: first in the queue,
 *     and not enough permits.
 *
 * With `layout` LK_LAYOUT_KAZOO it is kazoo's Semaphore: permits are nodes of
 * 32 digits in the path itself, and the queue is kazoo's lock at the path with
 * "-__lock__" behind it. The path's own data are the number of permits in
 * decimal, and all directories plain nodes. The number is made with the node,
 * and read with each acquire: another one ends it with LK_ERR_OTHER_LIMIT. What
 * is no number says nothing, to kazoo neither. Otherwise all is as above:
 * several permits at once, one round trip, tokens; a kazoo takes one permit
 * and waits in line for it.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What handles for one semaphore learn for those after them; set to 0. */
typedef struct lk_semaphore_history {
  unsigned failures; /**< in a row, of asking for place and permits at once */
} lk_semaphore_history;

/** Options beside those of a lock. Set `size`. */
typedef struct lk_semaphore_config {
  size_t size; /**< sizeof(lk_semaphore_config) */
  /** How many permits there are, 1 to 1,000,000. All users must say the same,
      or use `limit_path`. */
  int32_t permits;
  int32_t take; /**< how many to hold at once. 0: 1. At most 1,000 */
  /** A node that says how many permits there are, as Curator's SharedCount
      writes it (four bytes, big-endian); made with `permits` if it is missing,
      but not its parent. When the number grows, waiters get more; when it
      shrinks, nobody loses what he holds. NULL: `permits` is the number. Not
     with kazoo's layout, where the path itself says it, once and for all. */
  const char *limit_path;
  /** Where a handle is made for each acquire: shared by all of one client, and
      kept until the last of them is freed. NULL: each learns for itself. */
  lk_semaphore_history *memory;
} lk_semaphore_config;

/**
 * Make a handle for the semaphore at `path`; all is copied.
 *
 * An acquire also ends with the server's error if the node at `limit_path` is
 * missing and cannot be made (LK_ERR_NO_NODE: nor is its parent there;
 * LK_ERR_NO_AUTH, LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, LK_ERR_INVALID_ACL,
 * LK_ERR_QUOTA_EXCEEDED), and with LK_ERR_MARSHALLING if it has not four bytes;
 * in kazoo's layout with LK_ERR_OTHER_LIMIT, and LK_ERR_NO_AUTH where the path
 * may not be read.
 *
 * @return as lk_lock_new(); LK_ERR_BAD_ARGUMENT also where `take` is more than
 *         `permits` and there is no `limit_path`, for `limit_path` in kazoo's
 *         layout, and for other layouts than these two.
 */
LK_API int lk_semaphore_new(lk_lock **out, lk_client *client, const char *path,
                            const lk_lock_config *config,
                            const lk_semaphore_config *options);

/** Whether a node called `name` is a permit, where permits of this layout are:
    below "leases" in Curator's, in the path itself in kazoo's. `number`: of
    Curator's, in the order of which they were taken; 0 of kazoo's, which have
    none. */
LK_API bool lk_layout_is_permit(lk_layout layout, lk_bytes name,
                                int64_t *number);

#ifdef __cplusplus
}
#endif
#endif
