/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/text.h"

enum { REPLACEMENT_CHARACTER = 0xfffd };

static bool is_continuation(unsigned char c)
{
  return (c & 0xc0) == 0x80;
}

/* The length of the UTF-8 sequence that begins with byte `c`; 0: no sequence
 * begins with `c`. */
static size_t sequence_len(unsigned char c)
{
  if (c < 0x80)
    return 1;
  if (c >= 0xc2 && c <= 0xdf)
    return 2;
  if (c >= 0xe0 && c <= 0xef)
    return 3;
  return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

/* Whether `second` may follow `first`. Overlong sequences, surrogates and
 * characters above U+10FFFF are invalid. */
static bool second_byte_is_valid(unsigned char first, unsigned char second)
{
  switch (first) {
  case 0xe0: return second >= 0xa0;
  case 0xed: return second <= 0x9f;
  case 0xf0: return second >= 0x90;
  case 0xf4: return second <= 0x8f;
  default: return true;
  }
}

/* The number of bytes at `s` that form one character. If it is not valid, the
 * number of bytes that Java replaces together. */
static size_t scan_character(const unsigned char *s, size_t left, bool *valid)
{
  size_t len = sequence_len(s[0]), n = 1;

  *valid = false;
  if (len == 0)
    return 1;
  while (n < len && n < left && is_continuation(s[n]) &&
         (n > 1 || second_byte_is_valid(s[0], s[1])))
    n++;
  *valid = n == len;
  /* Java replaces an encoded surrogate as one character. */
  if (n == 1 && s[0] == 0xed && left >= 3 && is_continuation(s[1]) &&
      is_continuation(s[2]))
    return 3;
  return n;
}

static size_t put_three_bytes(unsigned char *out, uint32_t c)
{
  out[0] = (unsigned char)(0xe0 | c >> 12);
  out[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
  out[2] = (unsigned char)(0x80 | (c & 0x3f));
  return 3;
}

static size_t put_surrogates(unsigned char *out, const unsigned char *s)
{
  uint32_t c = (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 0x3f) << 12 |
               (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3fU);

  c -= 0x10000;
  return put_three_bytes(out, 0xd800 | c >> 10) +
         put_three_bytes(out + 3, 0xdc00 | (c & 0x3ff));
}

static bool is_ascii(lk_bytes text)
{
  const unsigned char *s = text.at;

  for (size_t i = 0; i < text.len; i++) {
    if (s[i] >= 0x80)
      return false;
  }
  return true;
}

lk_bytes sim_text_as_java(lk_bytes text, lk_arena *memory)
{
  const unsigned char *s = text.at;

  if (is_ascii(text))
    return text;
  /* A byte becomes three at most. */
  unsigned char *out = lk__arena_take(memory, 3, text.len + 1);
  size_t len = 0, n;

  for (size_t i = 0; i < text.len; i += n) {
    bool valid;

    n = scan_character(s + i, text.len - i, &valid);
    if (!valid)
      len += put_three_bytes(out + len, REPLACEMENT_CHARACTER);
    else if (n == 4)
      len += put_surrogates(out + len, s + i);
    else {
      memcpy(out + len, s + i, n);
      len += n;
    }
  }
  return lk_bytes_of(out, len);
}
