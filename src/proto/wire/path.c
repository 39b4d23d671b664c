/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/path.h"

#include <latchkey/client.h>

/* Decode one character of UTF-8 at `s`, which ends with a NUL. Returns its
 * length, 0 if it is malformed. */
static size_t decode(const unsigned char *s, uint32_t *out)
{
  size_t len = s[0] < 0x80   ? 1
               : s[0] < 0xc2 ? 0 /* a later byte, or too long a form */
               : s[0] < 0xe0 ? 2
               : s[0] < 0xf0 ? 3
                             : 0;

  if (len == 0)
    return 0;
  *out = len == 1 ? s[0] : s[0] & (0xffU >> (len + 1));
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    *out = *out << 6 | (s[i] & 0x3fU);
  }
  return len == 3 && *out < 0x800 ? 0 : len;
}

static bool allowed(uint32_t ch)
{
  return ch > 0x1f && !(ch >= 0x7f && ch <= 0x9f) &&
         !(ch >= 0xd800 && ch <= 0xf8ff) && ch < 0xfff0;
}

/* Printable ASCII, which nearly every path is made of. */
static bool plain(char ch)
{
  return (unsigned char)(ch - ' ') <= '~' - ' ';
}

/* One component, which ends at "/" or the end; its length, 0 if it is bad. */
static size_t component(const char *s)
{
  size_t len = 0;

  while (s[len] != '\0' && s[len] != '/') {
    uint32_t ch;

    if (plain(s[len])) {
      len++;
      continue;
    }
    size_t n = decode((const unsigned char *)s + len, &ch);

    if (n == 0 || !allowed(ch))
      return 0;
    len += n;
  }
  if ((len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
    return 0;
  return len;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t eight_at(const char *s)
{
  uint64_t v;

  memcpy(&v, s, sizeof v);
  return v;
}

/* Whether eight characters at `s` are printable ASCII, none of them a "/" with
 * "/" or "." behind it. The top bit of each byte tells of something else; a
 * carry into the next byte comes only from one that is bad itself. */
static bool simple_eight(const char *s)
{
  uint64_t v = eight_at(s);
  uint64_t slash = v ^ EACH('/');                            /* 0: it is one */
  uint64_t behind = (eight_at(s + 1) | EACH(1)) ^ EACH('/'); /* or "." */

  return ((v | (v + EACH(1)) | (v - EACH(' ')) |
           ((slash - EACH(1)) & (behind - EACH(1)) & ~(slash | behind))) &
          EACH(0x80)) == 0;
}

/* Whether an absolute path is valid beyond doubt, as nearly all are. */
static bool simple(const char *path, size_t len)
{
  if (len < 8 || path[len - 1] == '/' || !simple_eight(path + len - 8))
    return false;
  for (size_t i = 0; i + 8 < len; i += 8) {
    if (!simple_eight(path + i))
      return false;
  }
  return true;
}

bool lk__path_valid(const char *path, bool sequential)
{
  if (path == NULL || path[0] != '/')
    return false;
  if (path[1] == '\0' || simple(path, strlen(path)))
    return true;
  for (const char *s = path; *s == '/';) {
    s++;
    if (*s == '\0')
      return sequential;
    size_t len = component(s);

    if (len == 0)
      return false;
    s += len;
  }
  return true;
}

int lk_path_check(const char *path)
{
  return lk__path_valid(path, false) ? 0 : LK_ERR_BAD_PATH;
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

const char *lk__path_rest(const char *chroot, const char *path, bool sequential)
{
  return chroot[0] != '\0' && !sequential && strcmp(path, "/") == 0 ? "" : path;
}
