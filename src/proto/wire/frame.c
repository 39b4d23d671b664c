/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"
#include "proto/wire/frame.h"

enum { PREFIX = 4 }; /* bytes of a frame's length field */

/* Read the length field at `at`. */
static int32_t frame_len(const void *at)
{
  lk_reader r;

  lk__reader_init(&r, at, PREFIX);
  return lk__reader_int(&r);
}

/* Why a frame of this length is refused. */
static lk_frame_result refusal_of_len(int32_t len)
{
  return len < 0 ? LK_FRAME_BAD : LK_FRAME_TOO_BIG;
}

static bool is_valid_len(const lk_frames *f, int32_t len)
{
  return len >= 0 && (size_t)len <= f->limit;
}

static void skip_bytes(lk_bytes *bytes, size_t len)
{
  bytes->at = (const char *)bytes->at + len;
  bytes->len -= len;
}

/* Whether the bytes were received into lk__frame_room(), behind the partial
 * frame. */
static bool received_in_room(const lk_buf *partial, const lk_bytes *bytes)
{
  return bytes->at == lk__buf_room(partial) &&
         bytes->len <= partial->cap - partial->end;
}

/* Move bytes to the partial frame until it has `want` bytes, or `*bytes` is
 * empty. false: there is no memory. */
static bool move_to_partial(lk_frames *f, lk_bytes *bytes, size_t want)
{
  size_t missing = want - lk__buf_len(&f->partial);
  size_t len = missing < bytes->len ? missing : bytes->len;

  if (received_in_room(&f->partial, bytes))
    f->partial.end += len;
  else if (len > 0 && !lk__buf_append(&f->partial, bytes->at, len))
    return false;
  skip_bytes(bytes, len);
  return true;
}

/* The slow path of lk__frame_next(): the bytes at hand are only a part of a
 * frame, so the frame is put together in `partial`. */
static lk_frame_result continue_partial(lk_frames *f, lk_bytes *bytes,
                                        lk_bytes *out)
{
  if (lk__buf_len(&f->partial) < PREFIX && !move_to_partial(f, bytes, PREFIX))
    return LK_FRAME_NO_MEMORY;
  if (lk__buf_len(&f->partial) < PREFIX)
    return LK_FRAME_NONE;
  int32_t len = frame_len(lk__buf_bytes(&f->partial));

  if (!is_valid_len(f, len))
    return refusal_of_len(len);
  size_t whole = PREFIX + (size_t)len;

  if (!move_to_partial(f, bytes, whole))
    return LK_FRAME_NO_MEMORY;
  if (lk__buf_len(&f->partial) < whole)
    return LK_FRAME_NONE;
  *out = lk_bytes_of(lk__buf_bytes(&f->partial) + PREFIX, (size_t)len);
  f->partial_was_returned = true;
  if (whole > LK_FRAMES_KEPT)
    f->large_was_returned = true;
  return LK_FRAME_WHOLE;
}

/* Drop the frame that was returned. */
static void drop_returned(lk_frames *f)
{
  lk__buf_consume(&f->partial, lk__buf_len(&f->partial));
  f->partial_was_returned = false;
}

lk_frame_result lk__frame_next(lk_frames *f, lk_bytes *bytes, lk_bytes *out)
{
  if (f->partial_was_returned)
    drop_returned(f);
  if (lk__buf_len(&f->partial) > 0 || bytes->len < PREFIX)
    return bytes->len == 0 ? LK_FRAME_NONE : continue_partial(f, bytes, out);
  int32_t len = frame_len(bytes->at);

  if (!is_valid_len(f, len))
    return refusal_of_len(len);
  if (bytes->len - PREFIX < (size_t)len)
    return continue_partial(f, bytes, out);
  *out = lk_bytes_of((const char *)bytes->at + PREFIX, (size_t)len);
  skip_bytes(bytes, PREFIX + (size_t)len);
  return LK_FRAME_WHOLE;
}

unsigned char *lk__frame_room(lk_frames *f, size_t least, size_t *len)
{
  size_t held = lk__buf_len(&f->partial);

  if (f->partial_was_returned || held < PREFIX)
    return NULL;
  size_t missing =
      PREFIX + (size_t)frame_len(lk__buf_bytes(&f->partial)) - held;

  /* No more than was received already: a false length takes little memory. */
  *len = missing < held ? missing : held;
  if (*len < least || !lk__buf_reserve(&f->partial, *len))
    return NULL;
  return lk__buf_room(&f->partial);
}

void lk__frames_trim(lk_frames *f)
{
  if (f->partial_was_returned)
    drop_returned(f);
  if (lk__buf_len(&f->partial) == 0)
    lk__buf_trim(&f->partial, LK_FRAMES_KEPT);
}

void lk__frames_reset(lk_frames *f)
{
  drop_returned(f);
  lk__frames_trim(f);
}
