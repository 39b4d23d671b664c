/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * A stream of bytes that is split into frames. The input consists of the limit
 * of the frame size (2 bytes), a seed for the places at which the stream is cut
 * into pieces (1 byte), and the stream.
 *
 * Oracle: the stream in one piece and in many pieces gives the same frames up
 * to the same error. Memory grows only with the bytes that have arrived.
 */

#include "proto/wire/frame.h"
#include "target.h"

/* All frames so far, each with its length in front as a size_t. */
typedef struct cut_result {
  lk_frames frames;
  lk_buf found;
  size_t arrived;
  bool refused;
} cut_result;

static void cut_result_init(cut_result *o, size_t limit)
{
  *o = (cut_result){
      .frames = {.partial = {.mem = &lk__mem_libc}, .limit = limit},
      .found = {.mem = &lk__mem_libc}};
}

static void cut_result_add(cut_result *o, lk_bytes frame)
{
  must(frame.len <= o->frames.limit);
  must(lk__buf_append(&o->found, &frame.len, sizeof frame.len));
  if (frame.len > 0)
    must(lk__buf_append(&o->found, frame.at, frame.len));
}

/* Feed a copy of the bytes in a block of exactly their size, so that the
 * sanitizer finds a read beyond their end. */
static void feed_copy(cut_result *o, const uint8_t *at, size_t len)
{
  uint8_t *copy = malloc(len);
  lk_bytes bytes = {copy, len}, frame;

  must(copy != NULL || len == 0);
  if (len > 0)
    memcpy(copy, at, len);
  o->arrived += len;
  for (;;) {
    lk_frame_result result = lk__frame_next(&o->frames, &bytes, &frame);

    must(result != LK_FRAME_NO_MEMORY);
    must(o->frames.partial.cap <= 256 + 2 * (o->arrived + 4));
    o->refused = result == LK_FRAME_BAD || result == LK_FRAME_TOO_BIG;
    if (result != LK_FRAME_WHOLE)
      break;
    cut_result_add(o, frame);
  }
  free(copy);
}

static void cut_result_free(cut_result *o)
{
  lk__buf_free(&o->frames.partial);
  lk__buf_free(&o->found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  cut_result whole, pieces;

  if (size < 3)
    return 0;
  size_t limit = (size_t)(data[0] << 8 | data[1]);
  uint32_t seed = data[2];

  data += 3;
  size -= 3;
  cut_result_init(&whole, limit);
  cut_result_init(&pieces, limit);
  feed_copy(&whole, data, size);
  for (size_t at = 0; at < size && !pieces.refused;) {
    seed = seed * 1103515245 + 12345;
    size_t len = seed >> 16 & 15;

    if (len > size - at)
      len = size - at;
    feed_copy(&pieces, data + at, len);
    at += len;
  }
  must(whole.refused == pieces.refused);
  size_t found = lk__buf_len(&whole.found);

  must(found == lk__buf_len(&pieces.found));
  if (found > 0)
    must(memcmp(lk__buf_bytes(&whole.found), lk__buf_bytes(&pieces.found),
                found) == 0);
  cut_result_free(&whole);
  cut_result_free(&pieces);
  return 0;
}
