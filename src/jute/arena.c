/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/arena.h"

#include <stdalign.h>

#define SMALLEST 1024 /* bytes of the first block */

struct lk_arena_block {
  lk_arena_block *next; /* the next older block, or NULL */
  size_t cap;           /* size of `bytes` */
  size_t used;          /* of an older block; lk_arena.used is that of the
                           newest one */
  alignas(max_align_t) unsigned char bytes[];
};

static lk_arena_block *new_block(lk_arena *a, size_t cap)
{
  lk_arena_block *b;

  if (cap > SIZE_MAX - sizeof *b)
    return NULL;
  b = lk__mem_resize(a->mem, NULL, sizeof *b + cap);
  if (b != NULL) {
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
  }
  return b;
}

/* Begin a new block for `size` bytes or more, twice as large as the newest
 * one. */
static bool add_block(lk_arena *a, size_t size)
{
  size_t cap = SMALLEST;
  lk_arena_block *b;

  if (a->first != NULL && a->first->cap <= SIZE_MAX / 2)
    cap = a->first->cap * 2;
  b = new_block(a, cap < size ? size : cap);
  if (b == NULL)
    return false;
  if (a->first != NULL)
    a->first->used = a->used;
  b->next = a->first;
  a->first = b;
  a->used = 0;
  return true;
}

void *lk__arena_take_raw(lk_arena *a, size_t count, size_t size)
{
  const size_t unit = alignof(max_align_t);
  size_t len; /* count * size, rounded up to units */
  void *p;

  if (size > 0 && count > (SIZE_MAX - unit) / size)
    return NULL;
  len = (count * size + unit - 1) / unit * unit;
  if (a->first == NULL || a->first->cap - a->used < len) {
    if (!add_block(a, len))
      return NULL;
  }
  p = a->first->bytes + a->used;
  a->used += len;
  return p;
}

void *lk__arena_take(lk_arena *a, size_t count, size_t size)
{
  void *p = lk__arena_take_raw(a, count, size);

  return p == NULL ? NULL : memset(p, 0, count * size);
}

void lk__arena_clear(lk_arena *a, size_t max_kept)
{
  size_t need = a->used;

  /* Something was taken since the last reset, so there is a first block. */
  for (lk_arena_block *b = a->first->next; b != NULL; b = b->next)
    need += b->used;
  a->used = 0;
  if (a->first->next == NULL && a->first->cap <= max_kept)
    return;
  lk__arena_free(a);
  if (need <= max_kept)
    a->first =
        new_block(a, need); /* if it is NULL, the next take tries again */
}

void lk__arena_free(lk_arena *a)
{
  while (a->first != NULL) {
    lk_arena_block *b = a->first;

    a->first = b->next;
    lk__mem_free(a->mem, b);
  }
  a->used = 0;
}
