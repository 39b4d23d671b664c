/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_QUEUE_H
#define LK_RECIPES_LOCAL_LOCAL_QUEUE_H

/**
 * @file
 * A local queue: lock handles of one client for the same mutex share one
 * contender node. On release, the node is handed off to the next local request,
 * or deleted (local_handoff.h).
 *
 * While requests wait, the queue has a contender. When the client is closed,
 * the contender ends, and the queue ends all requests with it.
 */

#include "recipes/lock/lock.h"

typedef struct lk_local_request lk_local_request;

typedef struct lk_local_queue {
  lk_link link;             /**< in the session lease's list of local queues */
  lk_close_hook close_hook; /**< stops the timer when the client is closed */
  lk_session_lease *lease;
  size_t refs; /**< held by handles, requests and functions on the stack */
  lk_lock_options options;  /**< a copy of those of the first handle */
  lk_contender *node;       /**< the shared contender, which waits or holds; or
                               NULL */
  lk_local_request *holder; /**< the request that holds the lock, or NULL */
  lk_safe_list waiters;     /**< requests that wait, in the order of arrival */
  lk_link ends; /**< requests whose end is still to be reported, in order */
  unsigned handoffs; /**< how often `node` was handed off */
  lk_timer timer;    /**< see lk__local_queue_start_timer() */
} lk_local_queue;

/** The queue of the handle's mutex, or NULL. */
lk_local_queue *lk__local_queue_find(const lk_lock *l);
/** Make the queue of the handle's mutex; `fire` is the function of its timer.
    NULL: no memory. */
lk_local_queue *lk__local_queue_new(const lk_lock *l,
                                    const lk_lock_config *config,
                                    void (*fire)(lk_client *c, void *arg));

void lk__local_queue_unref(lk_local_queue *q);
/** Start the queue's timer, to fire in the next turn of the loop. The timer
    invokes callbacks that must not be invoked inside a call of an owner. */
void lk__local_queue_start_timer(lk_local_queue *q);

#endif
