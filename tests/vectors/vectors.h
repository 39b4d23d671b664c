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
  unsigned char *bytes; /**< a block of exactly `len`; NULL: "-" */
  size_t len;
} vector;

typedef struct vectors {
  vector *frames;
  size_t count;
} vectors;

/** Read them from `path`, or from $srcdir/tests/vectors/vectors.txt. Aborts with a
    message if that cannot be read or understood. */
vectors vectors_load(const char *path);
void vectors_free(vectors *v);

/** A copy of bytes in a block of exactly that size, so that a sanitizer sees
    whoever reads one too far. For free(). */
unsigned char *exactly(const void *bytes, size_t len);

#endif
