/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_WRITER_H
#define LK_JUTE_WRITER_H

#include <latchkey/types.h>

/**
 * Writes into the `cap` bytes at `buf`, and nothing behind them. `len` counts
 * the bytes that do not fit, too: if it is larger than `cap` in the end, the
 * caller needs `len` bytes of memory and writes again. A length over 2^31 - 1,
 * which Jute cannot express, sets `err` to LK_ERR_TOO_BIG.
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

/** Count `len` more bytes and return their address; NULL: they do not fit. */
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

/* Put a big-endian integer. */
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

/** Write the bytes without their length. */
static inline void lk__writer_raw(lk_writer *w, const void *bytes, size_t len)
{
  unsigned char *at = len == 0 ? NULL : lk__writer_take(w, len);

  if (at != NULL)
    memcpy(at, bytes, len);
}

/** Write the count of a vector, or the length of the bytes that follow. */
static inline void lk__writer_count(lk_writer *w, size_t count)
{
  if (count > INT32_MAX)
    w->err = LK_ERR_TOO_BIG;
  else
    lk__writer_int(w, (int32_t)count);
}

void lk__writer_long(lk_writer *w, int64_t v);
/** Write the length and the bytes; -1, Jute's null, if v.at is NULL. */
void lk__writer_bytes(lk_writer *w, lk_bytes v);
void lk__writer_stat(lk_writer *w, const lk_stat *v);
/** Overwrite the int at offset `at`, unless it did not fit into `cap` bytes. */
void lk__writer_patch(lk_writer *w, size_t at, int32_t v);

#endif
