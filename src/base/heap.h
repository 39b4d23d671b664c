/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_HEAP_H
#define LK_BASE_HEAP_H

#include <latchkey/types.h>

/**
 * A priority queue by time: a pairing heap of nodes that live in their owners,
 * so that nothing is allocated and nothing can fail. Equal times: any order.
 */
typedef struct lk_heap {
  lk_heap_node *root; /**< the earliest, or NULL */
} lk_heap;

static inline bool lk__heap_has(const lk_heap_node *n)
{
  return n->prev != NULL;
}

/** Add `n`, which is in no heap. */
void lk__heap_add(lk_heap *h, lk_heap_node *n, int64_t at);
/** Take out; nothing happens to a node that is in no heap. */
void lk__heap_remove(lk_heap *h, lk_heap_node *n);

#endif
