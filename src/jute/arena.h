/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_ARENA_H
#define LK_JUTE_ARENA_H

#include "base/mem.h"

/**
 * Memory for one reply, used again for the next. Zero it and set `mem`.
 * After the first replies of a kind nothing is allocated any more.
 */
typedef struct lk_arena_block lk_arena_block;
typedef struct lk_arena {
  const lk_mem *mem;
  lk_arena_block *first; /**< what is in use, newest first */
  size_t used;           /**< bytes used of the newest block */
} lk_arena;

/** `count` * `size` bytes, aligned for any type, zeroed; NULL: no memory, or
    the product is too large. Valid until the next reset. */
void *lk__arena_take(lk_arena *a, size_t count, size_t size);
/** The same without initialisation, for a caller that fills all of it. */
void *lk__arena_take_raw(lk_arena *a, size_t count, size_t size);
/** lk__arena_reset() where something was taken. */
void lk__arena_clear(lk_arena *a, size_t keep);
/** All is free again; one block of what was needed, up to `keep` bytes,
    stays. Takes memory when that was in several blocks, and cannot fail. */
static inline void lk__arena_reset(lk_arena *a, size_t keep)
{
  if (a->used > 0)
    lk__arena_clear(a, keep);
}
void lk__arena_free(lk_arena *a);

#endif
