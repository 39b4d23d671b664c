/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"
#include "proto/wire/frame.h"

enum { PREFIX = 4, KEEP = 64 * 1024 };

static int32_t prefix(const void *at)
{
  lk_reader r;

  lk__reader_init(&r, at, PREFIX);
  return lk__reader_int(&r);
}

/* LK_FRAME_NONE: nothing is wrong with it. */
static lk_frame_result judge(const lk_frames *f, int32_t len)
{
  if (len < 0)
    return LK_FRAME_BAD;
  return (size_t)len > f->limit ? LK_FRAME_TOO_BIG : LK_FRAME_NONE;
}

static void advance(lk_bytes *bytes, size_t len)
{
  bytes->at = (const char *)bytes->at + len;
  bytes->len -= len;
}

/* Whether they were received into lk__frame_room(). */
static bool in_place(const lk_buf *partial, const lk_bytes *bytes)
{
  return bytes->at == lk__buf_room(partial) &&
         bytes->len <= partial->cap - partial->end;
}

/* Move up to `want` bytes in all into the partial frame. */
static bool collect(lk_frames *f, lk_bytes *bytes, size_t want)
{
  size_t missing = want - lk__buf_len(&f->partial);
  size_t len = missing < bytes->len ? missing : bytes->len;

  if (in_place(&f->partial, bytes))
    f->partial.end += len;
  else if (len > 0 && !lk__buf_append(&f->partial, bytes->at, len))
    return false;
  advance(bytes, len);
  return true;
}

static lk_frame_result continue_partial(lk_frames *f, lk_bytes *bytes,
                                        lk_bytes *out)
{
  if (lk__buf_len(&f->partial) < PREFIX && !collect(f, bytes, PREFIX))
    return LK_FRAME_NO_MEMORY;
  if (lk__buf_len(&f->partial) < PREFIX)
    return LK_FRAME_NONE;
  int32_t len = prefix(lk__buf_bytes(&f->partial));

  if (judge(f, len) != LK_FRAME_NONE)
    return judge(f, len);
  size_t whole = PREFIX + (size_t)len;

  if (!collect(f, bytes, whole))
    return LK_FRAME_NO_MEMORY;
  if (lk__buf_len(&f->partial) < whole)
    return LK_FRAME_NONE;
  *out = lk_bytes_of(lk__buf_bytes(&f->partial) + PREFIX, (size_t)len);
  f->handed = true;
  return LK_FRAME_WHOLE;
}

lk_frame_result lk__frame_next(lk_frames *f, lk_bytes *bytes, lk_bytes *out)
{
  if (f->handed)
    lk__frames_reset(f);
  if (lk__buf_len(&f->partial) > 0 || bytes->len < PREFIX)
    return bytes->len == 0 ? LK_FRAME_NONE : continue_partial(f, bytes, out);
  int32_t len = prefix(bytes->at);

  if (judge(f, len) != LK_FRAME_NONE)
    return judge(f, len);
  if (bytes->len - PREFIX < (size_t)len)
    return continue_partial(f, bytes, out);
  *out = lk_bytes_of((const char *)bytes->at + PREFIX, (size_t)len);
  advance(bytes, PREFIX + (size_t)len);
  return LK_FRAME_WHOLE;
}

unsigned char *lk__frame_room(lk_frames *f, size_t least, size_t *len)
{
  size_t held = lk__buf_len(&f->partial);

  if (f->handed || held < PREFIX)
    return NULL;
  size_t missing = PREFIX + (size_t)prefix(lk__buf_bytes(&f->partial)) - held;

  *len = missing < held ? missing : held;
  if (*len < least || !lk__buf_reserve(&f->partial, *len))
    return NULL;
  return lk__buf_room(&f->partial);
}

void lk__frames_reset(lk_frames *f)
{
  lk__buf_consume(&f->partial, lk__buf_len(&f->partial));
  lk__buf_trim(&f->partial, KEEP);
  f->handed = false;
}
