/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_REQUEST_H
#define LK_RECIPES_LOCAL_LOCAL_REQUEST_H

/**
 * @file
 * Turns: the wishes of the owners who stand behind one node (local.h), their
 * order, their places, and their ends.
 */

#include "recipes/local/local_queue.h"

/** One owner's wish. */
typedef struct lk_local_request {
  lk_acquisition acquisition;
  lk_contender *node; /**< once it was granted: the only part */
  lk_local_queue *queue;
  size_t refs; /**< the owner's, until it was told the end; questions */
  const lk_acquisition_callbacks *callbacks; /**< NULL: it hears no more of it */
  void *arg;
  bool once;
  bool told;                       /**< its place */
  int err;                         /**< of an end that is to be told */
  void (*end)(void *arg, int err); /**< NULL: none is to be told */
  lk_link link; /**< in the queue's list of waiters, or of ends; or in none */
} lk_local_request;

struct lk_local_queue {
  lk_link link; /**< in the session lease's list */
  lk_session_lease *lease;
  size_t refs;             /**< handles, turns, whoever is inside */
  lk_lock_options options; /**< of the handle that was the first */
  lk_contender *node;      /**< wanted or held; or NULL */
  lk_local_request *holder; /**< whose turn it is, or NULL */
  lk_safe_list waiters;    /**< turns, in order */
  lk_link ends;            /**< of turns: to be told, in order */
  unsigned handoffs;       /**< in a row */
  lk_timer soon;
};

/** One user of the queue less; the last one frees it. */
void lk__local_queue_unref(lk_local_queue *q);
/** Have the queue's timer fire, in no call of an owner. */
void lk__local_queue_schedule(lk_local_queue *q);

/** What `l` wants of `q`, with one reference: its owner's. NULL: no memory. */
lk_local_request *lk__local_request_new(lk_local_queue *q, lk_lock *l,
                                        const lk_acquisition_callbacks *who);
void lk__local_request_unref(lk_local_request *t);
/** It is over; its owner hears no more of it. */
void lk__local_request_finish(lk_local_request *t);

/** Put it behind all who wait. */
void lk__local_request_enqueue(lk_local_request *t);
void lk__local_request_dequeue(lk_local_request *t);
bool lk__local_request_is_waiting(const lk_local_request *t);
/** The waiter that is next, or NULL. */
lk_local_request *lk__local_queue_first(const lk_local_queue *q);

/** Tell its owner the end, not in the call that brought it about. */
void lk__local_request_end_later(lk_local_request *t,
                                 void (*end)(void *arg, int err), int err);
/** Those that there are now. */
void lk__local_queue_report_ends(lk_local_queue *q);
/** The first one's wish ends with `err`, now. */
void lk__local_queue_end_first(lk_local_queue *q, int err);

/** How many stand before it; NULL: before one who comes now. Only while the
    queue has a node. */
size_t lk__local_queue_count_before(const lk_local_queue *q,
                                    const lk_local_request *t);
/** Tell those who were not told yet, as far as places are known. */
void lk__local_queue_report_positions(lk_local_queue *q);

#endif
