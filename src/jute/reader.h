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

void lk__reader_init(lk_reader *r, const void *bytes, size_t len);
/** Bytes not yet read. */
size_t lk__reader_left(const lk_reader *r);
/** Refuse what was read: sets `err` unless it is set, and ends the reading. */
void lk__reader_fail(lk_reader *r, int err);
int32_t lk__reader_int(lk_reader *r);
int64_t lk__reader_long(lk_reader *r);
bool lk__reader_bool(lk_reader *r);
/** A view into the bytes; null stays null. */
lk_bytes lk__reader_bytes(lk_reader *r);
/** The count of a vector whose elements take at least `min_size` bytes each.
    `null` tells -1 from 0 and is true after a failure. */
size_t lk__reader_count(lk_reader *r, size_t min_size, bool *null);
/** Reads the LK_STAT_SIZE bytes of a Stat after one check. */
void lk__reader_stat(lk_reader *r, lk_stat *out);

#endif
