/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_QUEUE_H
#define LK_RECIPES_LOCAL_LOCAL_QUEUE_H

/**
 * @file
 * Lock handles of one client for the same mutex share one contender node. On
 * release, the node is handed off to the next local request, or deleted
 * (local_handoff.h).
 *
 * While requests wait, the queue has a contender. So the end of the client
 * reaches all of them.
 */

#include "recipes/lock/lock.h"

typedef struct lk_local_request lk_local_request;

typedef struct lk_local_queue {
  lk_link link; /**< in the session lease's list */
  lk_close_hook close_hook;
  lk_session_lease *lease;
  size_t refs;              /**< of handles, requests and active calls */
  lk_lock_options options;  /**< of the handle that made the queue */
  lk_contender *node;       /**< requested or held; or NULL */
  lk_local_request *holder; /**< the request that holds the lock, or NULL */
  lk_safe_list waiters;     /**< requests, in order */
  lk_link ends;      /**< requests whose end is to be reported, in order */
  unsigned handoffs; /**< since the node was created */
  lk_timer timer;
} lk_local_queue;

/** The queue of the handle's mutex, or NULL. */
lk_local_queue *lk__local_queue_find(const lk_lock *l);
/** Make it; `fire` is that of its timer. NULL: no memory. */
lk_local_queue *lk__local_queue_new(const lk_lock *l,
                                    const lk_lock_config *config,
                                    void (*fire)(lk_client *c, void *arg));

void lk__local_queue_unref(lk_local_queue *q);
/** Start the queue's timer, so that no callback is invoked inside a call of an
    owner. */
void lk__local_queue_schedule(lk_local_queue *q);

#endif
