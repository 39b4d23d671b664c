/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SINGLE_H
#define LK_SINGLE_H

/**
 * @file
 * The simplest exclusive lock: one ephemeral node. The client that creates it
 * holds, and the lock is free when the node is deleted. Programs in any
 * language take part by creating and deleting a node of that name.
 *
 * There is no queue, so the lock is not fair: any waiter may be the next, and
 * one may wait for ever. Each release wakes all waiters. Prefer lk_lock_new()
 * if there is a choice.
 *
 * The handle is an lk_lock, which is acquired, held, lost and released as
 * <latchkey/lock.h> says, with a fencing token, a lease and events. A free lock
 * is acquired in one round trip. In addition:
 *   - missing directories are created as persistent nodes;
 *   - LK_LOCK_EVENT_WAITING comes once, with position 0 and the lock's path;
 *   - all contenders need READ on the node (LK_ERR_NO_AUTH);
 *   - all contenders use the same name. Therefore a node is deleted only on a
 *     connection on which it was seen to be the handle's own, and a check of
 *     the node renews the lease only while the node is watched. One case cannot
 *     be detected: another client deletes a holder's node, and a third acquires
 *     the lock, while a release or lk_lock_guarded_multi() of the first is on
 *     its way. That request then deletes or checks the node of the third.
 * A handle waits for other handles of the same session, and for a node that an
 * earlier process left in a resumed session (lk_client_config.resume).
 *
 * Threads and callbacks: as for the client.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** More options. Set `size`; 0 selects the default of the others. */
typedef struct lk_single_config {
  size_t size; /**< sizeof(lk_single_config) */
  /** Read the node again after this many ms instead of watching it; at most
      3,600,000. 0: watch it, which reports a release at once. */
  int32_t poll_ms;
  /** The largest random delay of a waiter after a release and before each poll,
      in ms, so that the first waiter creates the node and the others only read
      it. At most 60,000. 0: 50 ms; -1: no delay, for few waiters. */
  int32_t spread_ms;
} lk_single_config;

/**
 * Make a handle for the lock whose node is at `path`; all is copied. `options`
 * NULL: the defaults. Of `config`, `persistent_parents` and `max_queue` have no
 * effect; `peek` reads the node first if the timeout is 0. `layout` is refused
 * with LK_ERR_BAD_ARGUMENT.
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
