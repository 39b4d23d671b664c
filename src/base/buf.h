/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_BUF_H
#define LK_BASE_BUF_H

#include "base/mem.h"

/**
 * A queue of bytes: added at the end, consumed at the start. To begin, zero it
 * and set `mem`.
 */
typedef struct lk_buf {
  const lk_mem *mem;
  unsigned char *at; /**< the memory, `cap` bytes */
  size_t cap;
  size_t start; /**< first byte that is still wanted */
  size_t end;   /**< one after the last */
  size_t secret; /**< so many of the first bytes that are wanted may hold
                      secrets: they are wiped wherever they are left */
} lk_buf;

static inline size_t lk__buf_len(const lk_buf *b)
{
  return b->end - b->start;
}

/** The bytes; valid until the next call that adds some. NULL only if there
    are none. */
static inline unsigned char *lk__buf_bytes(const lk_buf *b)
{
  return b->at == NULL ? NULL : b->at + b->start;
}

/** lk__buf_reserve() where that takes moving or memory. */
bool lk__buf_make_room(lk_buf *b, size_t len);

/** Room for `len` more bytes, at lk__buf_room(); false: none, b is as it was.
 */
static inline bool lk__buf_reserve(lk_buf *b, size_t len)
{
  return len <= b->cap - b->end || lk__buf_make_room(b, len);
}

/** Where the next byte goes; cap - end bytes are free there. */
static inline unsigned char *lk__buf_room(const lk_buf *b)
{
  return b->at == NULL ? NULL : b->at + b->end;
}

bool lk__buf_append(lk_buf *b, const void *bytes, size_t len);
/** The same for a secret. */
bool lk__buf_append_secret(lk_buf *b, const void *bytes, size_t len);
/** Drop `len` bytes, no more than there are, at the start; an empty buffer
    begins anew. */
void lk__buf_consume(lk_buf *b, size_t len);
/** Give back all memory; it can be filled anew. */
void lk__buf_free(lk_buf *b);

/** Give memory back when an empty buffer holds more than `keep` bytes. */
static inline void lk__buf_trim(lk_buf *b, size_t keep)
{
  if (b->cap > keep && lk__buf_len(b) == 0)
    lk__buf_free(b);
}

#endif
