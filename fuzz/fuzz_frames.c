/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * A stream cut into frames: first a limit (2 bytes) and the seed of how it is
 * cut (1 byte). It gives the same frames in one piece and in many, up to the
 * same refusal, and takes no more memory than has arrived.
 */

#include "proto/wire/frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
  if (!is_so)
    abort();
}

/* All frames so far, each behind its length as the machine has it. */
typedef struct outcome {
  lk_frames frames;
  lk_buf found;
  size_t arrived;
  bool refused;
} outcome;

static void begin(outcome *o, size_t limit)
{
  *o = (outcome){.frames = {.partial = {.mem = &lk__mem_libc}, .limit = limit},
                 .found = {.mem = &lk__mem_libc}};
}

static void keep(outcome *o, lk_bytes frame)
{
  must(frame.len <= o->frames.limit);
  must(lk__buf_append(&o->found, &frame.len, sizeof frame.len));
  if (frame.len > 0)
    must(lk__buf_append(&o->found, frame.at, frame.len));
}

/* Feed `len` bytes from a block of just their size. */
static void feed(outcome *o, const uint8_t *at, size_t len)
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
    keep(o, frame);
  }
  free(copy);
}

static void end(outcome *o)
{
  lk__buf_free(&o->frames.partial);
  lk__buf_free(&o->found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  outcome whole, pieces;

  if (size < 3)
    return 0;
  size_t limit = (size_t)(data[0] << 8 | data[1]);
  uint32_t seed = data[2];

  data += 3;
  size -= 3;
  begin(&whole, limit);
  begin(&pieces, limit);
  feed(&whole, data, size);
  for (size_t at = 0; at < size && !pieces.refused;) {
    seed = seed * 1103515245 + 12345;
    size_t len = seed >> 16 & 15;

    if (len > size - at)
      len = size - at;
    feed(&pieces, data + at, len);
    at += len;
  }
  must(whole.refused == pieces.refused);
  size_t found = lk__buf_len(&whole.found);

  must(found == lk__buf_len(&pieces.found));
  if (found > 0)
    must(memcmp(lk__buf_bytes(&whole.found), lk__buf_bytes(&pieces.found),
                found) == 0);
  end(&whole);
  end(&pieces);
  return 0;
}
