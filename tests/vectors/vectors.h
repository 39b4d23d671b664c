/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_VECTORS_VECTORS_H
#define LK_VECTORS_VECTORS_H

#include <stdbool.h>
#include <stddef.h>

/** A frame of vectors.txt, which says what the fields mean. */
typedef struct vector {
  char name[48];
  bool from_server;
  char kind[32];
  unsigned char
      *bytes; /**< a block of exactly `len`; NULL: the server closed */
  size_t len;
} vector;

typedef struct vectors {
  vector *frames;
  size_t count;
} vectors;

/** Read the vectors from `path`; NULL: from $srcdir/tests/vectors/vectors.txt.
    Aborts with a message if the file cannot be read or is malformed. */
vectors vectors_load(const char *path);
void vectors_free(vectors *v);

/** Copy bytes to a block of exactly their size, so that a sanitizer reports a
    read behind them. The caller calls free(). */
unsigned char *exactly(const void *bytes, size_t len);

#endif
