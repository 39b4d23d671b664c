/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_READER_H
#define LK_JUTE_READER_H

#include <latchkey/types.h>

/** Bytes a Stat takes on the wire. */
#define LK_STAT_SIZE 68

/**
 * A checked cursor over bytes from the wire. The first thing that does not fit
 * sets `err` to LK_ERR_MARSHALLING; from then on everything reads as zero,
 * false or null and the cursor stands at its end.
 */
typedef struct lk_reader {
  const unsigned char *at;
  const unsigned char *end;
  int err;
} lk_reader;

static inline void lk__reader_init(lk_reader *r, const void *bytes, size_t len)
{
  r->at = bytes;
  r->end = len == 0 ? r->at : r->at + len;
  r->err = 0;
}

/** Bytes not yet read. */
static inline size_t lk__reader_left(const lk_reader *r)
{
  return (size_t)(r->end - r->at);
}

/** Refuse what was read: sets `err` unless it is set, and ends the reading. */
void lk__reader_fail(lk_reader *r, int err);

static inline uint32_t lk__get32(const unsigned char *at)
{
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
         at[3];
}

/* Two's complement, without leaving it to the compiler. */
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
/** lk__reader_bytes() of what does not fit, or is null. */
lk_bytes lk__reader_bytes_slow(lk_reader *r);

/** A view into the bytes; null stays null. */
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

/** The count of a vector whose elements take at least `min_size` bytes each.
    `null` tells -1 from 0 and is true after a failure. */
size_t lk__reader_count(lk_reader *r, size_t min_size, bool *null);
/** Reads the LK_STAT_SIZE bytes of a Stat after one check. */
void lk__reader_stat(lk_reader *r, lk_stat *out);

#endif
