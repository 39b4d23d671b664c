/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/naming.h"

/* No mark is the end of another, and none ends in a digit: at most one stands
 * directly before the digits, and that is its last occurrence. */
const lk_mark lk__mark_lock = {"lock-", LK_FAMILY_MUTEX, LK_SIDE_WRITER};
const lk_mark lk__mark_write = {"__WRIT__", LK_FAMILY_RW, LK_SIDE_WRITER};
const lk_mark lk__mark_read = {"__READ__", LK_FAMILY_RW, LK_SIDE_READER};
static const lk_mark kazoo_lock = {"__lock__", LK_FAMILY_KAZOO, LK_SIDE_WRITER};
static const lk_mark kazoo_read = {"__rlock__", LK_FAMILY_KAZOO,
                                   LK_SIDE_READER};
static const lk_mark latch = {"latch-", LK_FAMILY_LATCH, LK_SIDE_OWN};
const lk_mark lk__mark_lease = {"lease-", LK_FAMILY_LEASE, LK_SIDE_OWN};

static const lk_mark *const marks[] = {
    &lk__mark_lock, &lk__mark_write, &lk__mark_read, &kazoo_lock,
    &kazoo_read,    &latch,          &lk__mark_lease};

static bool is_digit(unsigned char c)
{
  return c >= '0' && c <= '9';
}

static const lk_mark *mark_at_end(const char *at, size_t len)
{
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    size_t n = strlen(marks[i]->text);

    if (len >= n && memcmp(at + len - n, marks[i]->text, n) == 0)
      return marks[i];
  }
  return NULL;
}

bool lk__name_parse(lk_bytes name, lk_name *out)
{
  const char *at = name.at;
  size_t len = name.len;
  size_t digits = 0;
  int64_t suffix = 0;
  int64_t unit = 1;

  for (; len > 0 && is_digit((unsigned char)at[len - 1]); len--) {
    if (++digits > 10)
      return false;
    suffix += (at[len - 1] - '0') * unit;
    unit *= 10;
  }
  if (digits == 0)
    return false;
  out->suffix = suffix;
  out->mark = mark_at_end(at, len);
  if (out->mark == NULL && len > 0 && at[len - 1] == '-') {
    out->suffix = -suffix;
    out->mark = mark_at_end(at, len - 1);
  }
  return out->mark != NULL;
}

bool lk__mark_contends(const lk_mark *a, const lk_mark *b)
{
  if (a->side == LK_SIDE_OWN || b->side == LK_SIDE_OWN)
    return a->family == b->family;
  return true;
}

void lk__name_prefix(char out[LK_PREFIX_LEN + 1],
                     const unsigned char random[16])
{
  static const char hex[] = "0123456789abcdef";
  char *p = out;

  memcpy(p, "_c_", 3);
  p += 3;
  for (size_t i = 0; i < 16; i++) {
    unsigned b = random[i];

    if (i == 6)
      b = 0x40 | (b & 0x0f); /* version 4 */
    if (i == 8)
      b = 0x80 | (b & 0x3f); /* the usual variant */
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    *p++ = hex[b >> 4];
    *p++ = hex[b & 0x0f];
  }
  *p++ = '-';
  *p = '\0';
}

bool lk__name_is_ours(lk_bytes name, const char *prefix, const lk_mark *mark)
{
  const char *at = name.at;
  size_t n = strlen(mark->text);
  size_t i = LK_PREFIX_LEN + n;

  if (name.len <= i || memcmp(at, prefix, LK_PREFIX_LEN) != 0 ||
      memcmp(at + LK_PREFIX_LEN, mark->text, n) != 0)
    return false;
  i += at[i] == '-';
  size_t digits = name.len - i;

  while (i < name.len && is_digit((unsigned char)at[i]))
    i++;
  return i == name.len && digits >= 1 && digits <= 10;
}
