/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_REQUEST_H
#define LK_RECIPES_LOCAL_LOCAL_REQUEST_H

/**
 * @file
 * The requests that share one contender node (local_queue.h): their order,
 * grant, positions and ends.
 */

#include "recipes/local/local_queue.h"

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

/** Make a request of `l`, with one reference, the owner's. NULL: no memory. */
lk_local_request *
lk__local_request_new(lk_local_queue *q, lk_lock *l,
                      const lk_acquisition_callbacks *callbacks);
void lk__local_request_unref(lk_local_request *r);
/** End the request without a report, and drop the owner's reference. */
void lk__local_request_finish(lk_local_request *r);

void lk__local_request_enqueue(lk_local_request *r);
void lk__local_request_dequeue(lk_local_request *r);
bool lk__local_request_is_waiting(const lk_local_request *r);
/** The first waiter, or NULL. */
lk_local_request *lk__local_queue_first(const lk_local_queue *q);

/** The queue's node holds: grant the lock to `r`, the first waiter. */
void lk__local_request_grant(lk_local_request *r);

/** Queue the end of `r`: the queue's timer invokes `end` with `err`. */
void lk__local_request_end_later(lk_local_request *r,
                                 void (*end)(void *arg, int err), int err);
/** Report the ends that are queued at the time of the call. */
void lk__local_queue_report_ends(lk_local_queue *q);
/** End the first waiter with `err` and report it at once. */
void lk__local_queue_end_first(lk_local_queue *q, int err);

/** The number of predecessors, local and other ones, that a request would have
    if it were added now. The queue must have a contender. */
size_t lk__local_queue_count_before_new(const lk_local_queue *q);
/** Report to each waiting request its position, if that is known and was not
    reported yet. */
void lk__local_queue_report_positions(lk_local_queue *q);

#endif
