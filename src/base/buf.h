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
  size_t start; /**< index of the first byte that is not consumed */
  size_t end;   /**< index behind the last byte */
  /** Number of bytes from `start` on that may hold secrets. They are wiped when
      they are consumed, moved or freed. */
  size_t secret_len;
} lk_buf;

static inline size_t lk__buf_len(const lk_buf *b)
{
  return b->end - b->start;
}

/** The bytes that are not consumed; valid until the next call that adds bytes.
    NULL: the buffer has no memory, and so no bytes. */
static inline unsigned char *lk__buf_bytes(const lk_buf *b)
{
  return b->at == NULL ? NULL : b->at + b->start;
}

/** The slow path of lk__buf_reserve(), which moves bytes or allocates. */
bool lk__buf_reserve_slow(lk_buf *b, size_t len);

/** Make room for `len` more bytes at lk__buf_room(). false: there is no memory,
    and the buffer is unchanged. */
static inline bool lk__buf_reserve(lk_buf *b, size_t len)
{
  return len <= b->cap - b->end || lk__buf_reserve_slow(b, len);
}

/** The address behind the last byte, where cap - end bytes are free. */
static inline unsigned char *lk__buf_room(const lk_buf *b)
{
  return b->at == NULL ? NULL : b->at + b->end;
}

/** Append a copy of the bytes. false: there is no memory, and the buffer is
    unchanged. */
bool lk__buf_append(lk_buf *b, const void *bytes, size_t len);
/** Append a copy of a secret, as lk__buf_append() does. All bytes up to its end
    will be wiped. */
bool lk__buf_append_secret(lk_buf *b, const void *bytes, size_t len);
/** Drop the first `len` bytes; the buffer must have that many. A buffer that is
    empty then starts again at the beginning of its memory. */
void lk__buf_consume(lk_buf *b, size_t len);
/** Drop all bytes and free the memory. The buffer can be used again. */
void lk__buf_free(lk_buf *b);

/** Free the memory of an empty buffer if it is more than `keep` bytes. */
static inline void lk__buf_trim(lk_buf *b, size_t keep)
{
  if (b->cap > keep && lk__buf_len(b) == 0)
    lk__buf_free(b);
}

#endif
