/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_HEAP_H
#define LK_BASE_HEAP_H

#include <latchkey/types.h>

/**
 * A priority queue by time, as a pairing heap. The nodes are members of their
 * owners' structs, so no function allocates memory and none can fail. Nodes
 * with equal times come out in any order.
 */
typedef struct lk_heap {
  lk_heap_node *root; /**< the earliest node; NULL: the heap is empty */
} lk_heap;

/** Whether `n` is in a heap. */
static inline bool lk__heap_has(const lk_heap_node *n)
{
  return n->prev != NULL;
}

/** Add `n`, which must be in no heap, for the time `at`. */
void lk__heap_add(lk_heap *h, lk_heap_node *n, int64_t at);
/** Remove `n`, if it is in a heap. */
void lk__heap_remove(lk_heap *h, lk_heap_node *n);

#endif
