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
  lk_acquisition acquisition;
  lk_contender *node; /**< set when granted: the acquisition's only contender */
  lk_local_queue *queue;
  size_t refs; /**< the owner's, until its end is reported; of callers */
  const lk_acquisition_callbacks *callbacks; /**< NULL: no report */
  void *arg;
  bool once;              /**< end with LK_ERR_BUSY instead of waiting */
  bool position_reported; /**< this request's position */
  int err;                /**< for `end` */
  void (*end)(void *arg,
              int err); /**< the callback that reports the end; or NULL */
  lk_link link;         /**< in the queue's `waiters` or `ends`, or in none */
};

/** A request of `l`, with one reference: its owner's. NULL: no memory. */
lk_local_request *
lk__local_request_new(lk_local_queue *q, lk_lock *l,
                      const lk_acquisition_callbacks *callbacks);
void lk__local_request_unref(lk_local_request *r);
/** End without a report, and drop the owner's reference. */
void lk__local_request_finish(lk_local_request *r);

void lk__local_request_enqueue(lk_local_request *r);
void lk__local_request_dequeue(lk_local_request *r);
bool lk__local_request_is_waiting(const lk_local_request *r);
/** The first waiter, or NULL. */
lk_local_request *lk__local_queue_first(const lk_local_queue *q);

/** The queue's node holds: grant the lock to `r`, the first waiter. */
void lk__local_request_grant(lk_local_request *r);

/** Have the timer report the end with `end`. */
void lk__local_request_end_later(lk_local_request *r,
                                 void (*end)(void *arg, int err), int err);
/** Report the ends that are queued now. */
void lk__local_queue_report_ends(lk_local_queue *q);
/** End the first waiter with `err` and report it at once. */
void lk__local_queue_end_first(lk_local_queue *q, int err);

/** The number of predecessors of `r`; NULL: of a new request. Only while the
    queue has a contender. */
size_t lk__local_queue_count_before(const lk_local_queue *q,
                                    const lk_local_request *r);
/** Report the positions that are known and were not reported yet. */
void lk__local_queue_report_positions(lk_local_queue *q);

#endif
