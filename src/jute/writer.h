/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_WRITER_H
#define LK_JUTE_WRITER_H

#include <latchkey/types.h>

/**
 * Writes into `cap` bytes at `buf` and counts on when they are full: `len` is
 * what was wanted, and nothing is written past the end. A length that Jute
 * cannot express (over 2^31 - 1) sets `err` to LK_ERR_TOO_BIG.
 */
typedef struct lk_writer {
  unsigned char *buf;
  size_t cap;
  size_t len;
  int err;
} lk_writer;

static inline void lk__writer_init(lk_writer *w, void *buf, size_t cap)
{
  *w = (lk_writer){.buf = buf, .cap = cap};
}

/** The next `len` bytes, which count; NULL: they are only counted. */
static inline unsigned char *lk__writer_take(lk_writer *w, size_t len)
{
  size_t at = w->len;

  if (len > SIZE_MAX - at) {
    w->err = LK_ERR_TOO_BIG;
    return NULL;
  }
  w->len = at + len;
  return w->len <= w->cap ? w->buf + at : NULL;
}

static inline void lk__put32(unsigned char *at, uint32_t v)
{
  at[0] = (unsigned char)(v >> 24);
  at[1] = (unsigned char)(v >> 16);
  at[2] = (unsigned char)(v >> 8);
  at[3] = (unsigned char)v;
}

static inline void lk__writer_int(lk_writer *w, int32_t v)
{
  unsigned char *at = lk__writer_take(w, 4);

  if (at != NULL)
    lk__put32(at, (uint32_t)v);
}

static inline void lk__writer_bool(lk_writer *w, bool v)
{
  unsigned char *at = lk__writer_take(w, 1);

  if (at != NULL)
    *at = v ? 1 : 0;
}

/** The bytes alone, without a length before them. */
static inline void lk__writer_raw(lk_writer *w, const void *bytes, size_t len)
{
  unsigned char *at = len == 0 ? NULL : lk__writer_take(w, len);

  if (at != NULL)
    memcpy(at, bytes, len);
}

/** The count of a vector, or the length of bytes that follow. */
static inline void lk__writer_count(lk_writer *w, size_t count)
{
  if (count > INT32_MAX)
    w->err = LK_ERR_TOO_BIG;
  else
    lk__writer_int(w, (int32_t)count);
}

void lk__writer_long(lk_writer *w, int64_t v);
void lk__writer_bytes(lk_writer *w, lk_bytes v);
void lk__writer_stat(lk_writer *w, const lk_stat *v);
/** Overwrite the int at offset `at`, if it was inside `cap`. */
void lk__writer_patch(lk_writer *w, size_t at, int32_t v);

#endif
