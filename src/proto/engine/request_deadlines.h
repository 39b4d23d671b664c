/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REQUEST_DEADLINES_H
#define LK_PROTO_ENGINE_REQUEST_DEADLINES_H

/**
 * @file
 * The deadlines of requests, as a heap. A request has no fixed address, since
 * its ring moves it. So a deadline knows its request by lk_request.end, by
 * which the requests of a ring are sorted, and finds it by a binary search.
 */

#include "base/heap.h"
#include "proto/engine/time.h"

struct lk_request;

/** The deadline of a request in the ring `sent` or `waiting`. */
typedef struct lk_deadline {
  lk_heap_node node;         /**< in lk_request_deadlines.heap */
  uint64_t end;              /**< lk_request.end of its request */
  bool is_waiting;           /**< its request is in the ring `waiting`; else in
                                  `sent` */
  struct lk_deadline *spare; /**< the next one in lk_request_deadlines.spares */
} lk_deadline;

typedef struct lk_request_deadlines {
  lk_heap heap;        /**< of lk_deadline */
  lk_deadline *spares; /**< a list of unused ones, or NULL */
  size_t nspares;      /**< length of that list */
} lk_request_deadlines;

/** Give `r` the deadline `at_ms`; LK_NEVER: none. @return false: no memory. */
bool lk__deadline_add(lk_request_deadlines *all, const lk_mem *mem,
                      struct lk_request *r, int64_t at_ms);
/** Remove the deadline of `r`, if it has one. */
void lk__deadline_drop(lk_request_deadlines *all, const lk_mem *mem,
                       struct lk_request *r);
/** A deadline that has passed at `now`; NULL: none has. */
const lk_deadline *lk__deadline_due(const lk_request_deadlines *all,
                                    int64_t now);
/** When the next deadline passes; LK_NEVER: there is none. */
static inline int64_t lk__deadline_next(const lk_request_deadlines *all)
{
  return all->heap.root == NULL ? LK_NEVER : all->heap.root->at;
}
/** Free the unused deadlines; all others must have been dropped. */
void lk__deadlines_free(lk_request_deadlines *all, const lk_mem *mem);

#endif
