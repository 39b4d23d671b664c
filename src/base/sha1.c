/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sha1.h"

#include <stdint.h>
#include <string.h>

/* SHA-1 as specified in RFC 3174. */

/* The sizes in bytes of a block and of the part before the message's length. */
enum { BLOCK = 64, LENGTH_AT = BLOCK - 8 };

static uint32_t rotate_left(uint32_t x, int bits)
{
  return x << bits | x >> (32 - bits);
}

/* f(t;B,C,D) + K(t) of the RFC. */
static uint32_t round_value(int round, const uint32_t v[5])
{
  if (round < 20)
    return ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999;
  if (round < 40)
    return (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1;
  if (round < 60)
    return ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc;
  return (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;
}

static void hash_block(uint32_t h[5], const unsigned char *block)
{
  uint32_t w[80], v[5];

  for (int i = 0; i < 16; i++, block += 4)
    w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
           (uint32_t)block[2] << 8 | block[3];
  for (int i = 16; i < 80; i++)
    w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 80; i++) {
    uint32_t next = round_value(i, v) + rotate_left(v[0], 5) + v[4] + w[i];

    v[4] = v[3];
    v[3] = v[2];
    v[2] = rotate_left(v[1], 30);
    v[1] = v[0];
    v[0] = next;
  }
  for (int i = 0; i < 5; i++)
    h[i] += v[i];
}

/* Hash the last `len` bytes of the message, fewer than a block, and the
 * padding: a bit that is 1, zeros, and `bits`, the length of the message in
 * bits. */
static void hash_end(uint32_t h[5], const unsigned char *rest, size_t len,
                     uint64_t bits)
{
  unsigned char block[BLOCK] = {0};

  if (len > 0)
    memcpy(block, rest, len);
  block[len] = 0x80;
  if (len >= LENGTH_AT) {
    hash_block(h, block);
    memset(block, 0, sizeof block);
  }
  for (int i = 0; i < 8; i++)
    block[BLOCK - 1 - i] = (unsigned char)(bits >> 8 * i);
  hash_block(h, block);
}

void lk__sha1(const void *bytes, size_t len, unsigned char out[LK_SHA1_LEN])
{
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const unsigned char *at = bytes;
  size_t left = len;

  for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
    hash_block(h, at);
  hash_end(h, at, left, (uint64_t)len * 8);
  for (int i = 0; i < LK_SHA1_LEN; i++)
    out[i] = (unsigned char)(h[i / 4] >> (24 - i % 4 * 8));
}

void lk__sha1_text(const void *bytes, size_t len,
                   char out[LK_SHA1_TEXT_LEN + 1])
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789+/";
  /* base64 reads 6 bits at a time, from two bytes; the last pair needs a byte
   * behind the digest */
  unsigned char digest[LK_SHA1_LEN + 1] = {0};

  lk__sha1(bytes, len, digest);
  for (int i = 0; i < LK_SHA1_TEXT_LEN - 1; i++) {
    int at = i * 6 / 8, bits_before = i * 6 % 8;
    unsigned pair = (unsigned)digest[at] << 8 | digest[at + 1];

    out[i] = letters[pair >> (16 - bits_before - 6) & 63];
  }
  out[LK_SHA1_TEXT_LEN - 1] = '=';
  out[LK_SHA1_TEXT_LEN] = '\0';
}
