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

void lk__writer_init(lk_writer *w, void *buf, size_t cap);
void lk__writer_int(lk_writer *w, int32_t v);
void lk__writer_long(lk_writer *w, int64_t v);
void lk__writer_bool(lk_writer *w, bool v);
void lk__writer_bytes(lk_writer *w, lk_bytes v);
/** The bytes alone, without a length before them. */
void lk__writer_raw(lk_writer *w, const void *bytes, size_t len);
/** The count of a vector, or the length of bytes that follow. */
void lk__writer_count(lk_writer *w, size_t count);
void lk__writer_stat(lk_writer *w, const lk_stat *v);
/** Overwrite the int at offset `at`, if it was inside `cap`. */
void lk__writer_patch(lk_writer *w, size_t at, int32_t v);

#endif
