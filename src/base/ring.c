/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/ring.h"

#define SMALLEST 4 /* items of the first array; a power of two */

void lk__ring_init(lk_ring *r, const lk_mem *mem, size_t size)
{
  memset(r, 0, sizeof *r);
  r->mem = mem;
  r->size = size;
}

bool lk__ring_grow(lk_ring *r)
{
  size_t cap = r->cap == 0 ? SMALLEST : r->cap * 2;
  size_t to_end = r->cap - r->head; /* items from the oldest one on */
  unsigned char *items;

  if (cap < r->cap || cap > SIZE_MAX / r->size)
    return false;
  items = lk__mem_resize(r->mem, NULL, cap * r->size);
  if (items == NULL)
    return false;
  /* The array is full. Copy the items in their order: those from the oldest to
   * the array's end, then those at its beginning. */
  if (r->items != NULL) {
    memcpy(items, r->items + r->head * r->size, to_end * r->size);
    memcpy(items + to_end * r->size, r->items, r->head * r->size);
  }
  lk__mem_free(r->mem, r->items);
  r->items = items;
  r->cap = cap;
  r->head = 0;
  return true;
}

void lk__ring_free(lk_ring *r)
{
  lk__mem_free(r->mem, r->items);
  lk__ring_init(r, r->mem, r->size);
}
