/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCKS_LOCAL_QUEUE_H
#define LK_RECIPES_LOCKS_LOCAL_QUEUE_H

/**
 * @file
 * A local queue: lock handles of one client for the same mutex share one
 * contender node. On release, the node is handed off to the next local request,
 * or deleted.
 *
 * While requests wait, the queue has a contender. When the client is closed,
 * the contender ends, and the queue ends all requests with it.
 */

#include "recipes/locks/lock.h"

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
  lk_timer timer;    /**< see local_queue_start_timer() */
} lk_local_queue;

/* The requests that share one contender node (local_queue.h): their order,
   grant, positions and ends. */

/** The acquisition of one lock handle. */
struct lk_local_request {
  lk_acquisition acquisition; /**< must stay first: pointers are cast */
  lk_contender *node; /**< the queue's contender from the grant on, as the only
                         one of `acquisition`; before it NULL */
  lk_local_queue *queue;
  size_t refs; /**< that of the owner until the end is reported, and those of
                  callers */
  const lk_acquisition_callbacks *callbacks; /**< NULL: none are invoked */
  void *arg;                                 /**< for `callbacks` */
  bool once;              /**< end with LK_ERR_BUSY instead of waiting */
  bool position_reported; /**< the owner was notified of its position */
  int err;                /**< the argument for `end` */
  void (*end)(void *arg, int err); /**< the callback that will report the end;
                                      NULL: no end is queued */
  lk_link link; /**< in the queue's `waiters` or `ends`, or in neither */
};

/* The acquisition of a lock handle that uses a local queue. */

/** Let the acquisitions of the mutex `l` use the local queue of its path, which
    is made if there is none. false: no memory. */
bool lk__local_acquisition_attach(lk_lock *l, const lk_lock_config *config);

#endif
