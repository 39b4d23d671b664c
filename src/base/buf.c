/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/buf.h"

#define SMALLEST 256 /* bytes of the first block */

static void wipe_secrets(const lk_buf *b)
{
  if (b->secret_len > 0)
    lk__mem_wipe(lk__buf_bytes(b), b->secret_len);
}

/* Copy the bytes to a new block of `cap` bytes and free the old one. Without
 * memory the buffer is unchanged. */
static bool move_to_new_block(lk_buf *b, size_t cap)
{
  size_t len = lk__buf_len(b);
  unsigned char *at = lk__mem_resize(b->mem, NULL, cap);

  if (at == NULL)
    return false;
  memcpy(at, lk__buf_bytes(b), len);
  wipe_secrets(b);
  lk__mem_free(b->mem, b->at);
  b->at = at;
  b->cap = cap;
  b->start = 0;
  b->end = len;
  return true;
}

/* Bytes that were consumed need not be copied, and realloc() would leave a copy
 * of a secret in freed memory. In both cases the bytes move to a new block. */
static bool grow_block(lk_buf *b, size_t cap)
{
  if (b->start > 0 || b->secret_len > 0)
    return move_to_new_block(b, cap);
  /* A large block can be given more room without being copied. */
  unsigned char *at = lk__mem_resize(b->mem, b->at, cap);

  if (at == NULL)
    return false;
  b->at = at;
  b->cap = cap;
  return true;
}

bool lk__buf_reserve_slow(lk_buf *b, size_t len)
{
  size_t held = lk__buf_len(b);
  size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;

  if (len > SIZE_MAX - held)
    return false;
  /* Move the bytes to the start of the block if the consumed part before them
   * is at least as long as they are: then the two ranges do not overlap. */
  if (held + len <= b->cap && held <= b->start) {
    memcpy(b->at, lk__buf_bytes(b), held);
    wipe_secrets(b);
    b->start = 0;
    b->end = held;
    return true;
  }
  if (cap < SMALLEST)
    cap = SMALLEST;
  return grow_block(b, cap < held + len ? held + len : cap);
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
  b->secret_len = lk__buf_len(b);
  return true;
}

static void consume_secret(lk_buf *b, size_t len)
{
  size_t wiped_len = len < b->secret_len ? len : b->secret_len;

  lk__mem_wipe(lk__buf_bytes(b), wiped_len);
  b->secret_len -= wiped_len;
}

void lk__buf_consume(lk_buf *b, size_t len)
{
  if (b->secret_len > 0)
    consume_secret(b, len);
  b->start += len;
  if (b->start == b->end) {
    b->start = 0;
    b->end = 0;
  }
}

void lk__buf_free(lk_buf *b)
{
  wipe_secrets(b);
  b->secret_len = 0;
  lk__mem_free(b->mem, b->at);
  b->at = NULL;
  b->cap = 0;
  b->start = 0;
  b->end = 0;
}
