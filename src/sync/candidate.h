/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CANDIDATE_H
#define LK_SYNC_CANDIDATE_H

/**
 * @file
 * A candidate of an election for threads: its state, and the calls that wait
 * for it.
 */

#include <latchkey/sync.h>

#include "sync/call.h"

/**
 * A candidate of an election. The thread of the handle runs it, and stores for
 * all threads whether it leads, and until when.
 */
struct lk_sync_candidate {
  lk_sync_client *client;
  size_t calls_inside; /**< calls that wait; under the client's mutex */
  atomic_size_t refs;  /**< of the user, and of transactions */
  void (*on_event)(lk_sync_candidate *c, const lk_candidate_event *event,
                   void *arg);
  void *arg;
  lk_sync_lock *lock; /**< of lk_sync_candidate_new(); or NULL */

  /* Written by the thread of the handle, read by all. */
  _Atomic(int64_t) sure_until_ms; /**< the lease deadline, or LK_NOT_LEADING */
  _Atomic(int64_t) lease_deadline_ms; /**< INT64_MIN: it does not lead */
  _Atomic(uint64_t) term;             /**< 0: it does not lead */
  atomic_int state;                   /**< lk_candidate_state */

  /* For the thread of the handle. */
  lk_candidate *source; /**< NULL: it is being freed */
  lk_lock *source_lock; /**< of `source`; NULL: likewise */
  lk_listener listener; /**< for new lease deadlines */
  int end_err;          /**< why it has ended; 0: it has not */
  lk_link waiting;      /**< list of lk_wait, each of a candidate_wait */
};

/** Drop a reference of lk_sync_candidate.refs; the last one frees the
    memory. */
void lk__sync_candidate_unref(lk_sync_candidate *c);

#endif
