/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REQUEST_DEADLINES_H
#define LK_PROTO_ENGINE_REQUEST_DEADLINES_H

/**
 * @file
 * Deadlines of requests, the next one first. A request moves with its ring, so
 * a deadline finds it by the place of its last byte, which ascends in each
 * ring. Any number of requests may have deadlines; each costs the logarithm.
 */

#include "base/heap.h"
#include "proto/engine/time.h"

struct lk_request;

/** The deadline of a request that was sent or waits. */
typedef struct lk_deadline {
  lk_heap_node node;         /**< in lk_request_deadlines.heap */
  uint64_t end;              /**< lk_request.end of its request */
  bool waits;                /**< the ring of that: `waiting`, else `sent` */
  struct lk_deadline *spare; /**< next in the list of spares */
} lk_deadline;

typedef struct lk_request_deadlines {
  lk_heap heap;        /**< of lk_deadline */
  lk_deadline *spares; /**< freed ones, to be used again */
  size_t nspares;
} lk_request_deadlines;

/** Give `r` a deadline; LK_NEVER: none. @return false: no memory. */
bool lk__deadline_add(lk_request_deadlines *all, const lk_mem *mem,
                      struct lk_request *r, int64_t at_ms);
/** `r` leaves its ring, or completes. */
void lk__deadline_drop(lk_request_deadlines *all, const lk_mem *mem,
                       struct lk_request *r);
/** The deadline that has passed at `now`, or NULL. */
const lk_deadline *lk__deadline_due(const lk_request_deadlines *all,
                                    int64_t now);
/** When the next one passes, or LK_NEVER. */
static inline int64_t lk__deadline_next(const lk_request_deadlines *all)
{
  return all->heap.root == NULL ? LK_NEVER : all->heap.root->at;
}
/** Free the spares. */
void lk__deadlines_free(lk_request_deadlines *all, const lk_mem *mem);

#endif
