/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_READER_H
#define LK_JUTE_READER_H

#include <latchkey/types.h>

/** The bytes of a Stat on the wire. */
#define LK_STAT_SIZE 68

/**
 * A checked cursor over bytes from the wire. If a value does not fit into the
 * rest of the bytes, `err` becomes LK_ERR_MARSHALLING and the cursor moves to
 * the end. After an error all functions return zero, false or null, so a caller
 * may check `err` once, after reading a whole record.
 */
typedef struct lk_reader {
  const unsigned char *at;  /**< the next byte */
  const unsigned char *end; /**< behind the last byte */
  int err;                  /**< the first error; 0: none */
} lk_reader;

static inline void lk__reader_init(lk_reader *r, const void *bytes, size_t len)
{
  r->at = bytes;
  r->end = len == 0 ? r->at : r->at + len;
  r->err = 0;
}

/** The number of bytes that are not yet read. */
static inline size_t lk__reader_left(const lk_reader *r)
{
  return (size_t)(r->end - r->at);
}

/** Set `err`, unless it is set already, and move the cursor to the end. */
void lk__reader_fail(lk_reader *r, int err);

/* Get a big-endian integer. */
static inline uint32_t lk__get32(const unsigned char *at)
{
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
         at[3];
}

/* The conversion of a large unsigned value to a signed type is
 * implementation-defined in C11, so two's complement is computed here. */
static inline int32_t lk__get_int(const unsigned char *at)
{
  uint32_t v = lk__get32(at);

  return v <= INT32_MAX ? (int32_t)v : -(int32_t)(UINT32_MAX - v) - 1;
}

static inline int64_t lk__get_long(const unsigned char *at)
{
  uint64_t v = (uint64_t)lk__get32(at) << 32 | lk__get32(at + 4);

  return v <= INT64_MAX ? (int64_t)v : -(int64_t)(UINT64_MAX - v) - 1;
}

static inline int32_t lk__reader_int(lk_reader *r)
{
  const unsigned char *at = r->at;

  if (lk__reader_left(r) < 4) {
    lk__reader_fail(r, LK_ERR_MARSHALLING);
    return 0;
  }
  r->at += 4;
  return lk__get_int(at);
}

static inline int64_t lk__reader_long(lk_reader *r)
{
  const unsigned char *at = r->at;

  if (lk__reader_left(r) < 8) {
    lk__reader_fail(r, LK_ERR_MARSHALLING);
    return 0;
  }
  r->at += 8;
  return lk__get_long(at);
}

bool lk__reader_bool(lk_reader *r);
/** The slow path of lk__reader_bytes(): the bytes are null or do not fit. */
lk_bytes lk__reader_bytes_slow(lk_reader *r);

/** A length and that many bytes, as a view into the reader's bytes. The length
    -1, Jute's null, gives a view whose `at` is NULL. */
static inline lk_bytes lk__reader_bytes(lk_reader *r)
{
  size_t left = lk__reader_left(r);
  int32_t len = left < 4 ? -1 : lk__get_int(r->at);

  if (len < 0 || (size_t)len > left - 4)
    return lk__reader_bytes_slow(r);
  lk_bytes v = lk_bytes_of(r->at + 4, (size_t)len);

  r->at += 4 + (size_t)len;
  return v;
}

/** The count of a vector whose elements take at least `min_size` bytes each; a
    count that cannot fit is an error. `*null` is set to whether the count is
    -1, Jute's null, for which 0 is returned; it is true after an error, too. */
size_t lk__reader_count(lk_reader *r, size_t min_size, bool *null);
/** Read a Stat, with one check of the length for all of its LK_STAT_SIZE
    bytes. */
void lk__reader_stat(lk_reader *r, lk_stat *out);

#endif
