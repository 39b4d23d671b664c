/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_VECTORS_RELAY_H
#define LK_VECTORS_RELAY_H

#include "jute/record.h"
#include "vectors/vectors.h"

/**
 * A captured frame on its way through decoder, printer and encoder. Zero it,
 * set what is to be set, relay, look, clear.
 */
typedef struct relay {
  const vector *frame;
  const lk_mem *mem; /**< what the decoder takes */
  /** Told of each record, with its number for fuzz_records; or NULL. */
  void (*seen)(void *arg, const vector *frame, size_t which, const char *name,
               lk_bytes bytes);
  void *arg;

  lk_reader in;
  lk_arena arena;
  lk_writer out;
  unsigned char encoded[1024];
  lk_buf text;   /**< what was read, as words with a space before each */
  size_t needed; /**< bytes that may not be missing */
} relay;

/** Whether there are bytes, and they have a length before them. */
bool relay_is_frame(const vector *v);
/** Send `len` bytes, as they are behind the length of `frame`, through. */
int relay_run(relay *r, const unsigned char *bytes, size_t len);
/** Everything of the frame itself, as one line of text with its end. */
void relay_line(const vector *v, lk_buf *out);
void relay_clear(relay *r);

#endif
