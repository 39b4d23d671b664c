/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/path.h"

#include <latchkey/client.h>

/* The length in bytes of the UTF-8 character that begins with `first`; 0: no
 * character of up to three bytes begins with it. */
static size_t utf8_len(unsigned char first)
{
  if (first < 0x80)
    return 1;
  if (first < 0xc2)
    return 0; /* a continuation byte, or an overlong form */
  if (first < 0xe0)
    return 2;
  return first < 0xf0 ? 3 : 0;
}

/* Decode the UTF-8 character at `s`, a NUL-terminated text. Returns the length
 * of the character in bytes; 0: it is malformed, or has four bytes, which no
 * path may contain. */
static size_t decode_utf8(const unsigned char *s, uint32_t *out)
{
  size_t len = utf8_len(s[0]);

  if (len == 0)
    return 0;
  unsigned first_byte_mask = len == 1 ? 0x7fU : 0xffU >> (len + 1);

  *out = s[0] & first_byte_mask;
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    *out = *out << 6 | (s[i] & 0x3fU);
  }
  bool overlong = len == 3 && *out < 0x800;

  return overlong ? 0 : len;
}

static bool is_allowed_char(uint32_t ch)
{
  return ch > 0x1f && !(ch >= 0x7f && ch <= 0x9f) &&
         !(ch >= 0xd800 && ch <= 0xf8ff) && ch < 0xfff0;
}

/* One comparison for the fast path: nearly every path is printable ASCII. */
static bool is_printable_ascii(char ch)
{
  return (unsigned char)(ch - ' ') <= '~' - ' ';
}

/* The length of the component at `s`, which ends at a "/" or the end of the
 * path; 0: the component is invalid. */
static size_t component_len(const char *s)
{
  size_t len = 0;

  while (s[len] != '\0' && s[len] != '/') {
    uint32_t ch;

    if (is_printable_ascii(s[len])) {
      len++;
      continue;
    }
    size_t n = decode_utf8((const unsigned char *)s + len, &ch);

    if (n == 0 || !is_allowed_char(ch))
      return 0;
    len += n;
  }
  if ((len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
    return 0;
  return len;
}

#define EIGHT_TIMES(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t eight_at(const char *s)
{
  uint64_t v;

  memcpy(&v, s, sizeof v);
  return v;
}

/* Mark characters among the eight at `s`: those that are not printable ASCII,
 * and a "/" that is followed by "/" or ".". The top bit of a byte of the result
 * is set if its character is of this kind. An addition or subtraction can carry
 * into the next byte only from a byte with this bit set. So a carry can set
 * more of these bits, but never the first one. */
static uint64_t mark_not_simple(const char *s)
{
  uint64_t v = eight_at(s);
  /* A byte is 0 if its character is "/", and the next one is "/" or ".", which
     differ in bit 0. */
  uint64_t pair = (v ^ EIGHT_TIMES('/')) |
                  ((eight_at(s + 1) | EIGHT_TIMES(1)) ^ EIGHT_TIMES('/'));

  return (v + EIGHT_TIMES(1)) | (v - EIGHT_TIMES(' ')) |
         ((pair - EIGHT_TIMES(1)) & ~pair);
}

/* The fast path: whether an absolute path is valid by a check of eight
 * characters at a time. Nearly all paths are; others need the full check. */
static bool is_simple_path(const char *path, size_t len)
{
  if (len < 8 || path[len - 1] == '/')
    return false;
  /* The last eight may overlap with those of the loop. */
  uint64_t marks = mark_not_simple(path + len - 8);

  for (size_t i = 0; i + 8 < len; i += 8)
    marks |= mark_not_simple(path + i);
  return (marks & EIGHT_TIMES(0x80)) == 0;
}

/* Whether the path ends with "." or "..", which begins at `s`. With a number
 * behind it, that is a name like any other. */
static bool is_dots(const char *s)
{
  return strcmp(s, ".") == 0 || strcmp(s, "..") == 0;
}

bool lk__path_valid(const char *path, lk_path_use use)
{
  if (path == NULL || path[0] != '/')
    return false;
  bool is_root = path[1] == '\0';

  if (is_root || is_simple_path(path, strlen(path)))
    return true;
  for (const char *s = path; *s == '/';) {
    s++;
    if (*s == '\0')
      return use == LK_PATH_BEFORE_NUMBER;
    size_t len = component_len(s);

    if (len == 0)
      return use == LK_PATH_BEFORE_NUMBER && is_dots(s);
    s += len;
  }
  return true;
}

int lk_path_check(const char *path)
{
  return lk__path_valid(path, LK_PATH_OF_NODE) ? 0 : LK_ERR_BAD_PATH;
}

lk_bytes lk__path_strip(const char *chroot, size_t len, lk_bytes path)
{
  if (len == 0 || path.len < len || memcmp(path.at, chroot, len) != 0)
    return path;
  if (path.len == len)
    return lk_text("/");
  const char *rest = (const char *)path.at + len;

  return rest[0] == '/' ? lk_bytes_of(rest, path.len - len) : path;
}

const char *lk__path_rest(const char *chroot, const char *path, lk_path_use use)
{
  bool is_chroot =
      chroot[0] != '\0' && use == LK_PATH_OF_NODE && strcmp(path, "/") == 0;

  return is_chroot ? "" : path;
}

void lk__path_encode(const lk_record *rec, const void *value,
                     const char *chroot, const char *path, lk_writer *out)
{
  const lk_field *first = rec->fields;

  /* The first field is the path, or a record whose first field is the path. */
  if (first->kind == LK_KIND_RECORD) {
    lk__path_encode(first->elem, (const char *)value + first->offset, chroot,
                    path, out);
  } else {
    size_t root_len = chroot[0] == '\0' ? 0 : strlen(chroot);
    size_t len = strlen(path);

    lk__writer_count(out, root_len + len);
    lk__writer_raw(out, chroot, root_len);
    lk__writer_raw(out, path, len);
  }
  lk__record_encode_from(rec, 1, value, out);
}
