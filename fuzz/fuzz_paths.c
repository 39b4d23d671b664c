/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * A chroot up to the first NUL of the input, and a path after it.
 *
 * Oracle: a second implementation of ZooKeeper's rules accepts the same paths.
 * A valid path that is sent with a chroot is received unchanged.
 */

#include "proto/wire/path.h"
#include "target.h"

#include <latchkey/client.h>

/* The next UTF-8 character; 0: the end, -1: the bytes are not UTF-8. */
static int32_t next_char(const unsigned char **s)
{
  const unsigned char *at = *s;
  unsigned a = at[0];

  if (a < 0x80) {
    *s += a != 0;
    return (int32_t)a;
  }
  unsigned b = at[1];

  if (a >= 0xc2 && a <= 0xdf && (b & 0xc0) == 0x80) {
    *s += 2;
    return (int32_t)((a - 0xc0) * 64 + (b - 0x80));
  }
  unsigned least = a == 0xe0 ? 0xa0 : 0x80, most = a == 0xed ? 0x9f : 0xbf;

  if (a < 0xe0 || a > 0xef || b < least || b > most || (at[2] & 0xc0) != 0x80)
    return -1;
  *s += 3;
  return (int32_t)((a - 0xe0) * 4096 + (b - 0x80) * 64 + (at[2] - 0x80U));
}

/* Whether the path is valid by ZooKeeper's rules. `dots` is the length of the
 * current component if that consists of dots only, else more than two. */
static bool reference_valid(const char *path, bool sequential)
{
  const unsigned char *s = (const unsigned char *)path;
  size_t dots = 0, len = 0;

  if (*s++ != '/')
    return false;
  if (*s == '\0')
    return true;
  for (;;) {
    int32_t ch = next_char(&s);

    if (ch == 0 || ch == '/') {
      if (len == 0)
        return ch == 0 && sequential;
      if (dots == len && len <= 2) /* "." or "..", with a number a name */
        return ch == 0 && sequential;
      if (ch == 0)
        return true;
      dots = 0;
      len = 0;
      continue;
    }
    if (ch < 0x20 || (ch >= 0x7f && ch < 0xa0) ||
        (ch >= 0xd800 && ch <= 0xf8ff) || ch > 0xffef)
      return false;
    len++;
    dots += ch == '.';
  }
}

static void send_and_receive(const char *chroot, const char *path,
                             bool sequential)
{
  const char *rest = lk__path_rest(
      chroot, path, sequential ? LK_PATH_BEFORE_NUMBER : LK_PATH_OF_NODE);
  size_t root_len = strlen(chroot), len = root_len + strlen(rest);
  char *full = malloc(len + 1);

  must(full != NULL);
  memcpy(full, chroot, root_len);
  memcpy(full + root_len, rest, strlen(rest) + 1);
  must(reference_valid(full, sequential));
  lk_bytes own = lk__path_strip(chroot, root_len, lk_bytes_of(full, len));

  must(own.len == strlen(path) && memcmp(own.at, path, own.len) == 0);
  free(full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
  size_t root_len = nul == NULL ? 0 : (size_t)(nul - data);
  size_t skip = nul == NULL ? 0 : root_len + 1;
  char *chroot = copy_as_text(data, root_len);
  char *path = copy_as_text(data + skip, size - skip);

  for (int sequential = 0; sequential < 2; sequential++) {
    bool fine = lk__path_valid(path, sequential ? LK_PATH_BEFORE_NUMBER
                                                : LK_PATH_OF_NODE);

    must(fine == reference_valid(path, sequential));
    if (!fine)
      continue;
    send_and_receive("", path, sequential);
    if (lk__path_valid(chroot, LK_PATH_OF_NODE) && strcmp(chroot, "/") != 0)
      send_and_receive(chroot, path, sequential);
  }
  must((lk_path_check(path) == 0) == reference_valid(path, false));
  lk_bytes own =
      lk__path_strip(chroot, root_len, lk_bytes_of(path, strlen(path)));

  must(own.len <= strlen(path) || own.len == 1);
  free(chroot);
  free(path);
  return 0;
}
