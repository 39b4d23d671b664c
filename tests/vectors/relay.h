/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_VECTORS_RELAY_H
#define LK_VECTORS_RELAY_H

#include "jute/record.h"
#include "vectors/vectors.h"

/**
 * Passes a captured frame through decoder, printer and encoder. Fill the struct
 * with zeros, set the first members, call relay_run(), look at the results, and
 * call relay_clear().
 */
typedef struct relay {
  const vector *frame;
  const lk_mem *mem; /**< the memory of the decoder */
  /** Called for each record, with its number for fuzz_records. May be NULL. */
  void (*seen)(void *arg, const vector *frame, size_t which, const char *name,
               lk_bytes bytes);
  void *arg;

  lk_reader in;
  lk_arena arena;
  lk_writer out;
  unsigned char encoded[1024];
  lk_buf text;   /**< what was decoded, as words with a space before each */
  size_t needed; /**< without the last of so many bytes, the frame cannot be
                      decoded */
} relay;

/** Whether the vector has bytes that begin with a length field. */
bool relay_is_frame(const vector *v);
/** Decode and encode `len` bytes, which replace those of `frame` behind its
    length field. Returns 0 or an error. */
int relay_run(relay *r, const unsigned char *bytes, size_t len);
/** Append the content of the frame as a line of text. */
void relay_line(const vector *v, lk_buf *out);
void relay_clear(relay *r);

#endif
