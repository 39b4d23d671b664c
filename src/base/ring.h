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
/** Twice the room; false: no memory, r is as it was. */
bool lk__ring_grow(lk_ring *r);
void lk__ring_free(lk_ring *r);

/** Room for the next lk__ring_push(); false: no memory, r is as it was. */
static inline bool lk__ring_reserve(lk_ring *r)
{
  return r->count < r->cap || lk__ring_grow(r);
}

/** Item `i`, 0 the oldest; valid until the next push. */
static inline void *lk__ring_at(const lk_ring *r, size_t i)
{
  return r->items + ((r->head + i) & (r->cap - 1)) * r->size;
}

/** A new last item, to be filled in; there must be room for it. */
static inline void *lk__ring_push(lk_ring *r)
{
  return lk__ring_at(r, r->count++);
}

/** Drop the oldest. */
static inline void lk__ring_pop(lk_ring *r)
{
  r->head = (r->head + 1) & (r->cap - 1);
  r->count--;
}

/** Drop the newest. */
static inline void lk__ring_unpush(lk_ring *r)
{
  r->count--;
}

#endif
