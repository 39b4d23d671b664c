/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/path.h"
#include "support/suite.h"

#include <latchkey/client.h>

static bool valid(const char *path)
{
  return lk__path_valid(path, LK_PATH_OF_NODE);
}

START_TEST(valid_paths_are_accepted)
{
  static const char *const good[] = {
      "/",
      "/a",
      "/a/b/c",
      "/...",
      "/.a",
      "/a.",
      "/..a",
      "/a b",
      "/a/..b",
      "/zookeeper/config",
      "/~!@#$%",
      "/\xc3\xa9",
      "/\xe2\x82\xac",
      "/\xef\xbf\xaf", /* U+FFEF */
      "/\xef\xa4\x80", /* U+F900 */
  };

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    ck_assert_msg(valid(good[i]), "%s", good[i]);
    ck_assert_int_eq(lk_path_check(good[i]), 0);
  }
}
END_TEST

START_TEST(invalid_paths_are_refused)
{
  static const char *const bad[] = {
      "",       "a",       "a/b",    "//",    "/a//b",  "//a",
      "/a/",    "/.",      "/..",    "/./a",  "/a/.",   "/a/..",
      "/a/./b", "/a/../b", "/a\x01", "/\x1f", "/a\x7f", " /a",
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ck_assert_msg(!valid(bad[i]), "%s", bad[i]);
    ck_assert_int_eq(lk_path_check(bad[i]), LK_ERR_BAD_PATH);
  }
  ck_assert(!valid(NULL));
  ck_assert(!lk__path_valid(NULL, LK_PATH_BEFORE_NUMBER));
}
END_TEST

START_TEST(only_a_sequential_path_may_end_with_a_slash_or_dots)
{
  ck_assert(lk__path_valid("/a/.", LK_PATH_BEFORE_NUMBER));
  ck_assert(lk__path_valid("/..", LK_PATH_BEFORE_NUMBER));
  ck_assert(!lk__path_valid("/../a", LK_PATH_BEFORE_NUMBER));
  ck_assert(!lk__path_valid("/./.", LK_PATH_BEFORE_NUMBER));
  ck_assert(lk__path_valid("/a/", LK_PATH_BEFORE_NUMBER));
  ck_assert(lk__path_valid("/a/b/", LK_PATH_BEFORE_NUMBER));
  ck_assert(lk__path_valid("/", LK_PATH_BEFORE_NUMBER));
  ck_assert(lk__path_valid("/a", LK_PATH_BEFORE_NUMBER));
  ck_assert(!lk__path_valid("//", LK_PATH_BEFORE_NUMBER));
  ck_assert(!lk__path_valid("/a//", LK_PATH_BEFORE_NUMBER));
  ck_assert(!lk__path_valid("/./", LK_PATH_BEFORE_NUMBER));
  ck_assert(!valid("/a/"));
  ck_assert(!valid("/a/."));
}
END_TEST

/* Whether this path of `len` characters is valid: a slash, the letter a again
   and again, but `what` at the position `at`. */
static bool valid_with(size_t len, size_t at, const char *what)
{
  char path[48];

  memset(path, 'a', len);
  path[len] = '\0';
  path[0] = '/';
  memcpy(path + at, what, strlen(what));
  return valid(path);
}

START_TEST(error_is_found_at_any_place_of_a_path)
{
  static const char *const bad[] = {"\x1f", "\x7f", "\x80", "\xff", "\x01"};

  for (size_t len = 2; len < 40; len++) {
    for (size_t at = 1; at < len; at++) {
      size_t left = len - at; /* characters from `at` on */
      bool is_first = at == 1;

      for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert(!valid_with(len, at, bad[i]));
      ck_assert_int_eq(valid_with(len, at, "/"), !is_first && left > 1);
      ck_assert_int_eq(valid_with(len, at, "."), len > strlen("/."));
      ck_assert(valid_with(len, at, " "));
      ck_assert(valid_with(len, at, "~"));
      if (left < 2)
        continue;
      ck_assert(!valid_with(len, at, "//"));
      ck_assert_int_eq(valid_with(len, at, "/."), !is_first && left > 2);
      ck_assert_int_eq(valid_with(len, at, ".."), len > strlen("/.."));
      ck_assert(left < 3 || !valid_with(len, at, "/./"));
      ck_assert(left < 4 || !valid_with(len, at, "/../"));
    }
  }
}
END_TEST

/* ---- characters --------------------------------------------------------- */

/* Whether the server accepts a character: its rule, written in another way than
   in the library. The latter accepts no character that the server refuses, and
   refuses none that the server accepts. */
static bool server_accepts(uint32_t ch)
{
  if (ch < 0x20 || ch > 0xffef)
    return false;
  if (ch > 0x7e && ch < 0xa0)
    return false;
  return ch < 0xd800 || ch > 0xf8ff;
}

/* Write the character as UTF-8. Returns the number of bytes. */
static size_t encode(uint32_t ch, char *out)
{
  if (ch < 0x80) {
    out[0] = (char)ch;
    return 1;
  }
  if (ch < 0x800) {
    out[0] = (char)(0xc0 | ch >> 6);
    out[1] = (char)(0x80 | (ch & 0x3f));
    return 2;
  }
  if (ch < 0x10000) {
    out[0] = (char)(0xe0 | ch >> 12);
    out[1] = (char)(0x80 | (ch >> 6 & 0x3f));
    out[2] = (char)(0x80 | (ch & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | ch >> 18);
  out[1] = (char)(0x80 | (ch >> 12 & 0x3f));
  out[2] = (char)(0x80 | (ch >> 6 & 0x3f));
  out[3] = (char)(0x80 | (ch & 0x3f));
  return 4;
}

START_TEST(characters_are_accepted_if_a_server_accepts_them)
{
  for (uint32_t ch = 1; ch < 0x110000; ch++) {
    char path[16] = "/x";

    if (ch == '/')
      continue;
    encode(ch, path + 2);
    if (valid(path) != server_accepts(ch))
      ck_abort_msg("U+%04X", (unsigned)ch);
  }
}
END_TEST

/* Whether the bytes are the shortest UTF-8 form of the character `ch`. */
static bool is_shortest_form(const unsigned char *s, size_t len, uint32_t ch)
{
  char shortest[4];

  return encode(ch, shortest) == len && memcmp(shortest, s, len) == 0;
}

START_TEST(two_bytes_are_accepted_if_they_are_utf8)
{
  for (unsigned a = 0x80; a < 0x100; a++) {
    for (unsigned b = 1; b < 0x100; b++) {
      unsigned char s[] = {'/', (unsigned char)a, (unsigned char)b, 0};
      uint32_t ch = (a & 0x1f) << 6 | (b & 0x3f);

      if (valid((char *)s) !=
          (is_shortest_form(s + 1, 2, ch) && server_accepts(ch)))
        ck_abort_msg("%02x %02x", a, b);
    }
  }
}
END_TEST

START_TEST(three_bytes_are_accepted_if_they_are_utf8)
{
  for (unsigned a = 0xe0; a < 0x100; a++) {
    for (unsigned b = 1; b < 0x100; b++) {
      for (unsigned c = 0x7e; c < 0xc2; c++) {
        unsigned char s[] = {'/', (unsigned char)a, (unsigned char)b,
                             (unsigned char)c, 0};
        uint32_t ch = (a & 0x0f) << 12 | (b & 0x3f) << 6 | (c & 0x3f);

        if (valid((char *)s) !=
            (is_shortest_form(s + 1, 3, ch) && server_accepts(ch)))
          ck_abort_msg("%02x %02x %02x", a, b, c);
      }
    }
  }
}
END_TEST

START_TEST(truncated_character_is_refused)
{
  static const char *const cut[] = {
      "/\xc3",  "/\xe2", "/\xe2\x82", "/\xe2/\xac",
      "/\xc3/", "/\x80", "/\xbf",     "/a\xc3\xa9\xe2\x82"};

  for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
    size_t size = strlen(cut[i]) + 1;
    char *exact = malloc(size); /* ASan reports a read behind it */

    memcpy(exact, cut[i], size);
    ck_assert(!valid(exact));
    free(exact);
  }
}
END_TEST

/* ---- chroot ------------------------------------------------------------- */

static const char *strip(const char *chroot, const char *path)
{
  static char text[64];
  lk_bytes stripped = lk__path_strip(chroot, strlen(chroot), lk_text(path));

  ck_assert_uint_lt(stripped.len, sizeof text);
  memcpy(text, stripped.at, stripped.len);
  text[stripped.len] = '\0';
  return text;
}

START_TEST(the_chroot_is_stripped_at_a_component_only)
{
  ck_assert_str_eq(strip("", "/a/b"), "/a/b");
  ck_assert_str_eq(strip("/a", "/a/b"), "/b");
  ck_assert_str_eq(strip("/a", "/a"), "/");
  ck_assert_str_eq(strip("/a/b", "/a/b/c/d"), "/c/d");
  ck_assert_str_eq(strip("/a", "/ab"), "/ab");
  ck_assert_str_eq(strip("/a", "/ab/c"), "/ab/c");
  ck_assert_str_eq(strip("/a", "/b/a"), "/b/a");
  ck_assert_str_eq(strip("/a/b", "/a"), "/a");
  ck_assert_str_eq(strip("/a", "/zookeeper/config"), "/zookeeper/config");
  ck_assert_str_eq(strip("/a", ""), "");
}
END_TEST

START_TEST(path_from_a_server_needs_no_nul)
{
  char *path = malloc(4);

  memcpy(path, "/a/b", 4);
  lk_bytes own = lk__path_strip("/a", 2, lk_bytes_of(path, 4));
  ck_assert_uint_eq(own.len, 2);
  ck_assert_ptr_eq(own.at, path + 2);
  own = lk__path_strip("/a/b", 4, lk_bytes_of(path, 4));
  ck_assert_uint_eq(own.len, 1);
  own = lk__path_strip("/a/b/c", 6, lk_bytes_of(path, 4));
  ck_assert_uint_eq(own.len, 4);
  own = lk__path_strip("/a", 2, lk_bytes_of(NULL, 0));
  ck_assert_ptr_null(own.at);
  free(path);
}
END_TEST

START_TEST(the_root_is_the_chroot_itself)
{
  ck_assert_str_eq(lk__path_rest("/a", "/", LK_PATH_OF_NODE), "");
  ck_assert_str_eq(lk__path_rest("/a", "/", LK_PATH_BEFORE_NUMBER), "/");
  ck_assert_str_eq(lk__path_rest("/a", "/b", LK_PATH_OF_NODE), "/b");
  ck_assert_str_eq(lk__path_rest("/a", "/b/", LK_PATH_BEFORE_NUMBER), "/b/");
  ck_assert_str_eq(lk__path_rest("", "/", LK_PATH_OF_NODE), "/");
  ck_assert_str_eq(lk__path_rest("", "/", LK_PATH_BEFORE_NUMBER), "/");
}
END_TEST

SUITE("path", valid_paths_are_accepted, invalid_paths_are_refused,
      only_a_sequential_path_may_end_with_a_slash_or_dots,

      error_is_found_at_any_place_of_a_path,
      characters_are_accepted_if_a_server_accepts_them,
      two_bytes_are_accepted_if_they_are_utf8,
      three_bytes_are_accepted_if_they_are_utf8, truncated_character_is_refused,
      the_chroot_is_stripped_at_a_component_only,
      path_from_a_server_needs_no_nul, the_root_is_the_chroot_itself)
