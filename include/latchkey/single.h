/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SINGLE_H
#define LK_SINGLE_H

/**
 * @file
 * The simplest exclusive lock: one ephemeral node. Who makes it holds, and it
 * is free when the node is gone. Whoever makes and deletes a node of that name
 * takes part, in any language.
 *
 * There is no queue, so it is not fair: of those who wait anyone may be next,
 * and one may wait for ever. All who wait wake with each release. Prefer
 * lk_lock_new() where there is a choice.
 *
 * The result is an lk_lock, so <latchkey/lock.h> says how it is acquired, held,
 * lost and released: with the same fencing token, lease and events, and one
 * round trip where it is free. What differs:
 *   - the directory is made of persistent nodes if it is missing;
 *   - LK_LOCK_EVENT_WAITING is told once, with position 0 and the lock's path;
 *   - the node must be readable by all contenders (LK_ERR_NO_AUTH);
 *   - the name of the node is the same for everybody. What this library does
 *     about it: it never deletes a node without having seen on that connection
 *     that it is the handle's own, and never counts on a check of a node that
 *     it does not watch. What it cannot do anything about: where somebody
 *     deletes a holder's node by hand and another takes the lock in that
 *     instant, a release or a lk_lock_guarded() that is on its way meets the
 *     other's node.
 * A handle waits for another handle of the same session as for anybody else;
 * and so for a node that an earlier process has left in a session that this one
 * resumes (lk_client_config.resume).
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options beside those of a lock. Set `size`, leave at 0 what should be as
    usual. */
typedef struct lk_single_config {
  size_t size; /**< sizeof(lk_single_config) */
  /** Look again after so long instead of watching the node, in ms; at most
      3,600,000. 0: watch, and learn of a release at once. */
  int32_t poll_ms;
  /** Who learns of a release, or looks again, does so up to so much later, by
      chance, in ms; then one asks and the others see it. At most 60,000. 0: 50;
      -1: at once, right where few wait. */
  int32_t spread_ms;
} lk_single_config;

/**
 * Make a handle for the lock whose node is at `path`; all is copied. `options`
 * NULL: as usual. Of `config`, `persistent_parents`, `max_queue` and `announce`
 * have no effect; `peek` looks at the node first where the timeout is 0.
 * `layout` and `local_queue` are not for it (LK_ERR_BAD_ARGUMENT).
 *
 * @return as lk_lock_new().
 */
LK_API int lk_single_new(lk_lock **out, lk_client *client, const char *path,
                         const lk_lock_config *config,
                         const lk_single_config *options);

#ifdef __cplusplus
}
#endif
#endif
