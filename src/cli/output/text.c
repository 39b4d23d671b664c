/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/output/text.h"

/* Reserves `len` bytes and one for the NUL of cli_text_end(). */
static bool reserve_text(cli_text *t, size_t len)
{
  if (t->failed)
    return false;
  if (len < t->cap - t->len)
    return true;
  size_t cap = t->cap == 0 ? 128 : t->cap;

  while (cap - t->len <= len) {
    if (cap > SIZE_MAX / 2) {
      t->failed = true;
      return false;
    }
    cap *= 2;
  }
  char *at = realloc(t->at, cap);

  if (at == NULL) {
    t->failed = true;
    return false;
  }
  t->at = at;
  t->cap = cap;
  return true;
}

void cli_text_add(cli_text *t, const void *bytes, size_t len)
{
  if (len == 0 || !reserve_text(t, len))
    return;
  memcpy(t->at + t->len, bytes, len);
  t->len += len;
}

void cli_text_puts(cli_text *t, const char *s)
{
  cli_text_add(t, s, strlen(s));
}

void cli_text_vprintf(cli_text *t, const char *format, va_list args)
{
  va_list again;

  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, args);

  if (len < 0 || !reserve_text(t, (size_t)len)) {
    t->failed = true;
  } else {
    vsnprintf(t->at + t->len, (size_t)len + 1, format, again);
    t->len += (size_t)len;
  }
  va_end(again);
}

void cli_text_printf(cli_text *t, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  cli_text_vprintf(t, format, args);
  va_end(args);
}

static bool is_continuation(unsigned char c)
{
  return (c & 0xc0) == 0x80;
}

/* Whether `c` may follow `first`. The second byte shows whether a character has
   an overlong form, is a surrogate or is above U+10FFFF. */
static bool is_second_byte(unsigned char first, unsigned char c)
{
  switch (first) {
  case 0xe0: return c >= 0xa0 && c <= 0xbf;
  case 0xed: return c >= 0x80 && c <= 0x9f;
  case 0xf0: return c >= 0x90 && c <= 0xbf;
  case 0xf4: return c >= 0x80 && c <= 0x8f;
  default: return is_continuation(c);
  }
}

/* Returns the length of a character that begins with the byte `first`; 0: no
   character does. 0xc0 and 0xc1 would begin overlong forms. */
static size_t utf8_len_by_first_byte(unsigned char first)
{
  if (first < 0x80)
    return 1;
  if (first < 0xc2)
    return 0;
  if (first < 0xe0)
    return 2;
  if (first < 0xf0)
    return 3;
  return first < 0xf5 ? 4 : 0;
}

size_t cli_utf8_char_len(lk_bytes b)
{
  const unsigned char *s = b.at;
  size_t len = b.len == 0 ? 0 : utf8_len_by_first_byte(s[0]);

  if (len <= 1)
    return len;
  if (len > b.len || !is_second_byte(s[0], s[1]))
    return 0;
  for (size_t i = 2; i < len; i++)
    if (!is_continuation(s[i]))
      return 0;
  return len;
}

/* Returns `b` without its first `len` bytes. */
static lk_bytes skip_bytes(lk_bytes b, size_t len)
{
  return lk_bytes_of((const char *)b.at + len, b.len - len);
}

/* Returns the number of the character of `len` bytes at `s`. */
static unsigned code_of(const unsigned char *s, size_t len)
{
  static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  unsigned code = s[0] & first_bits[len];

  for (size_t i = 1; i < len; i++)
    code = code << 6 | (s[i] & 0x3fu);
  return code;
}

bool cli_utf8_is_control(const void *s, size_t len, unsigned *code)
{
  static const struct {
    unsigned first, last;
  } controls[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x061c, 0x061c},
                  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

  *code = code_of(s, len);
  for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++)
    if (*code >= controls[i].first && *code <= controls[i].last)
      return true;
  return false;
}

bool cli_utf8_ok(lk_bytes b)
{
  while (b.len > 0) {
    size_t len = cli_utf8_char_len(b);

    if (len == 0)
      return false;
    b = skip_bytes(b, len);
  }
  return true;
}

void cli_text_add_printable(cli_text *t, lk_bytes b)
{
  unsigned code;

  while (b.len > 0) {
    const unsigned char *s = b.at;
    size_t len = cli_utf8_char_len(b);

    if (len > 0 && !cli_utf8_is_control(s, len, &code)) {
      cli_text_add(t, s, len);
      b = skip_bytes(b, len);
      continue;
    }
    len = len == 0 ? 1 : len;
    for (size_t i = 0; i < len; i++)
      cli_text_printf(t, "\\x%02x", s[i]);
    b = skip_bytes(b, len);
  }
}

void cli_text_mask_controls(char *text)
{
  unsigned code;

  for (size_t len; *text != '\0'; text += len) {
    len = cli_utf8_char_len(lk_text(text));
    if (len > 0 && !cli_utf8_is_control(text, len, &code))
      continue;
    len = len == 0 ? 1 : len;
    memset(text, '?', len);
  }
}

void cli_text_base64(cli_text *t, lk_bytes b)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *s = b.at;

  for (size_t i = 0; i < b.len; i += 3) {
    size_t left = b.len - i;
    unsigned second = left > 1 ? s[i + 1] : 0u;
    unsigned third = left > 2 ? s[i + 2] : 0u;
    unsigned bits = (unsigned)s[i] << 16 | second << 8 | third;
    char four[4] = {digits[bits >> 18], digits[(bits >> 12) & 63],
                    left > 1 ? digits[(bits >> 6) & 63] : '=',
                    left > 2 ? digits[bits & 63] : '='};

    cli_text_add(t, four, sizeof four);
  }
}

void cli_text_time(cli_text *t, int64_t ms)
{
  /* The remainder is positive also for a time before 1970. */
  int64_t remainder_ms = ((ms % 1000) + 1000) % 1000;
  int64_t whole_seconds = (ms - remainder_ms) / 1000;
  time_t seconds = (time_t)whole_seconds;
  struct tm tm;

  /* A time_t of 32 bits ends in 2038. */
  if (seconds != whole_seconds || gmtime_r(&seconds, &tm) == NULL)
    cli_text_puts(t, "unknown");
  else
    cli_text_printf(t, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ",
                    tm.tm_year + 1900LL, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                    tm.tm_min, tm.tm_sec, (int)remainder_ms);
}

const char *cli_text_end(cli_text *t)
{
  if (!reserve_text(t, 0))
    return NULL;
  t->at[t->len] = '\0';
  return t->at;
}

void cli_text_free(cli_text *t)
{
  free(t->at);
  memset(t, 0, sizeof *t);
}
