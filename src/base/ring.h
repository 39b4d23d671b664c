/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_RING_H
#define LK_BASE_RING_H

#include "base/mem.h"

/** A queue of items of one size, first in, first out, in a growing array. */
typedef struct lk_ring {
  const lk_mem *mem;
  unsigned char *items;
  size_t size; /**< of an item, bytes */
  size_t cap;  /**< a power of two, or 0 */
  size_t head; /**< index of the oldest */
  size_t count;
} lk_ring;

void lk__ring_init(lk_ring *r, const lk_mem *mem, size_t size);
/** Double the array of a full ring. false: there is no memory, and the ring is
    unchanged. */
bool lk__ring_grow(lk_ring *r);
void lk__ring_free(lk_ring *r);

/** Make room for the next lk__ring_push(). false: there is no memory, and the
    ring is unchanged. */
static inline bool lk__ring_reserve(lk_ring *r)
{
  return r->count < r->cap || lk__ring_grow(r);
}

/** Item `i`, where item 0 is the oldest. The pointer is valid until the array
    grows. */
static inline void *lk__ring_at(const lk_ring *r, size_t i)
{
  return r->items + ((r->head + i) & (r->cap - 1)) * r->size;
}

/** Add an item and return it, for the caller to fill. There must be room for
    the item, see lk__ring_reserve(). */
static inline void *lk__ring_push(lk_ring *r)
{
  return lk__ring_at(r, r->count++);
}

/** Drop the oldest item. */
static inline void lk__ring_pop(lk_ring *r)
{
  r->head = (r->head + 1) & (r->cap - 1);
  r->count--;
}

#endif
