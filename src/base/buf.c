/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/buf.h"

#define SMALLEST 256

/* The secrets where they are now. */
static void wipe(const lk_buf *b)
{
  if (b->secret > 0)
    lk__mem_wipe(lk__buf_bytes(b), b->secret);
}

/* Copy the bytes to new memory. Without memory the buffer is unchanged. */
static bool move(lk_buf *b, size_t cap)
{
  size_t len = lk__buf_len(b);
  unsigned char *at = lk__mem_resize(b->mem, NULL, cap);

  if (at == NULL)
    return false;
  memcpy(at, lk__buf_bytes(b), len);
  wipe(b);
  lk__mem_free(b->mem, b->at);
  b->at = at;
  b->cap = cap;
  b->start = 0;
  b->end = len;
  return true;
}

static bool grow(lk_buf *b, size_t cap)
{
  if (b->start > 0 || b->secret > 0)
    return move(b, cap);
  /* A large block can be given more room without being copied. */
  unsigned char *at = lk__mem_resize(b->mem, b->at, cap);

  if (at == NULL)
    return false;
  b->at = at;
  b->cap = cap;
  return true;
}

bool lk__buf_make_room(lk_buf *b, size_t len)
{
  size_t held = lk__buf_len(b);
  size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;

  if (len > SIZE_MAX - held)
    return false;
  /* Moving down costs no more than what was consumed since the last time. */
  if (held + len <= b->cap && held <= b->start) {
    memcpy(b->at, lk__buf_bytes(b), held);
    wipe(b);
    b->start = 0;
    b->end = held;
    return true;
  }
  if (cap < SMALLEST)
    cap = SMALLEST;
  return grow(b, cap < held + len ? held + len : cap);
}

bool lk__buf_append(lk_buf *b, const void *bytes, size_t len)
{
  if (!lk__buf_reserve(b, len))
    return false;
  if (len > 0)
    memcpy(lk__buf_room(b), bytes, len);
  b->end += len;
  return true;
}

bool lk__buf_append_secret(lk_buf *b, const void *bytes, size_t len)
{
  if (!lk__buf_append(b, bytes, len))
    return false;
  b->secret = lk__buf_len(b);
  return true;
}

static void consume_secret(lk_buf *b, size_t len)
{
  size_t secret = len < b->secret ? len : b->secret;

  lk__mem_wipe(lk__buf_bytes(b), secret);
  b->secret -= secret;
}

void lk__buf_consume(lk_buf *b, size_t len)
{
  if (b->secret > 0)
    consume_secret(b, len);
  b->start += len;
  if (b->start == b->end) {
    b->start = 0;
    b->end = 0;
  }
}

void lk__buf_free(lk_buf *b)
{
  wipe(b);
  b->secret = 0;
  lk__mem_free(b->mem, b->at);
  b->at = NULL;
  b->cap = 0;
  b->start = 0;
  b->end = 0;
}
