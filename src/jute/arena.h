/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_ARENA_H
#define LK_JUTE_ARENA_H

#include "base/mem.h"

/**
 * Memory for the decoded parts of one reply, reset after it and used again for
 * the next. To begin, zero the struct and set `mem`. Once its block is large
 * enough for the replies of a client, nothing is allocated any more.
 */
typedef struct lk_arena_block lk_arena_block;
typedef struct lk_arena {
  const lk_mem *mem;
  lk_arena_block *first; /**< the newest block, in which memory is taken; NULL:
                              there is no block */
  size_t used;           /**< bytes taken of that block */
} lk_arena;

/** Take `count` * `size` zeroed bytes, aligned for any type. NULL: there is no
    memory, or the product is too large. Valid until the next reset. */
void *lk__arena_take(lk_arena *a, size_t count, size_t size);
/** Take `count` * `size` uninitialised bytes, as lk__arena_take() does, for a
    caller that sets all of them. */
void *lk__arena_take_raw(lk_arena *a, size_t count, size_t size);
/** The slow path of lk__arena_reset(), for an arena of which something was
    taken. */
void lk__arena_clear(lk_arena *a, size_t max_kept);
/** Make all memory of the arena available again. The arena keeps one block: its
    only one, or in place of several a new one of the size that was needed. If
    that block would have more than `max_kept` bytes, or there is no memory for
    it, the arena keeps none. */
static inline void lk__arena_reset(lk_arena *a, size_t max_kept)
{
  if (a->used > 0)
    lk__arena_clear(a, max_kept);
}
/** Free all blocks. The arena can be used again. */
void lk__arena_free(lk_arena *a);

#endif
