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
/** The same with uninitialised bytes, for a caller that sets all of them. */
void *lk__arena_take_raw(lk_arena *a, size_t count, size_t size);
/** The slow path of lk__arena_reset(), for an arena of which something was
    taken. */
void lk__arena_clear(lk_arena *a, size_t keep);
/** Make all memory of the arena available again. Several blocks are replaced by
    one block of the size that was needed, and no more than `keep` bytes are
    kept. This cannot fail: without memory the arena keeps no block. */
static inline void lk__arena_reset(lk_arena *a, size_t keep)
{
  if (a->used > 0)
    lk__arena_clear(a, keep);
}
/** Free all blocks. The arena can be used again. */
void lk__arena_free(lk_arena *a);

#endif
