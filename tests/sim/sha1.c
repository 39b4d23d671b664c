/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/sha1.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, DIGEST = 20 };

static uint32_t turn(uint32_t x, int bits)
{
  return x << bits | x >> (32 - bits);
}

static void mix(uint32_t h[5], const unsigned char block[BLOCK])
{
  uint32_t w[80], v[5];

  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 80; i++)
    w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 80; i++) {
    uint32_t f =
        i < 20   ? ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999
        : i < 40 ? (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1
        : i < 60 ? ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc
                 : (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;

    f += turn(v[0], 5) + v[4] + w[i];
    v[4] = v[3];
    v[3] = v[2];
    v[2] = turn(v[1], 30);
    v[1] = v[0];
    v[0] = f;
  }
  for (int i = 0; i < 5; i++)
    h[i] += v[i];
}

static void sha1(const void *bytes, size_t len, unsigned char out[DIGEST])
{
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  size_t padded = (len + 8) / BLOCK * BLOCK + BLOCK;
  unsigned char *copy = calloc(1, padded);

  if (len > 0)
    memcpy(copy, bytes, len);
  copy[len] = 0x80;
  for (size_t i = 0; i < 8; i++)
    copy[padded - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
  for (size_t at = 0; at < padded; at += BLOCK)
    mix(h, copy + at);
  free(copy);
  for (int i = 0; i < DIGEST; i++)
    out[i] = (unsigned char)(h[i / 4] >> (24 - i % 4 * 8));
}

void sim_sha1_text(const void *bytes, size_t len, char out[29])
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char digest[DIGEST + 1] = {0};

  sha1(bytes, len, digest);
  for (int i = 0; i < 28; i++) {
    int at = i * 6 / 8, shift = 10 - i * 6 % 8;
    unsigned pair =
        (unsigned)digest[at] << 8 | (at < DIGEST ? digest[at + 1] : 0U);

    out[i] = letters[pair >> shift & 63];
  }
  out[27] = '=';
  out[28] = '\0';
}
