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
/** Room for the next lk__ring_push(), which then cannot fail. */
bool lk__ring_reserve(lk_ring *r);
/** A new last item, zeroed; NULL: no memory, r is as it was. */
void *lk__ring_push(lk_ring *r);
/** Item `i`, 0 the oldest; valid until the next push. */
void *lk__ring_at(const lk_ring *r, size_t i);
/** Drop the oldest. */
void lk__ring_pop(lk_ring *r);
/** Drop the newest. */
void lk__ring_unpush(lk_ring *r);
void lk__ring_free(lk_ring *r);

#endif
