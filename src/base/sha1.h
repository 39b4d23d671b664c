/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SHA1_H
#define LK_BASE_SHA1_H

#include <stddef.h>

enum {
  LK_SHA1_LEN = 20,     /**< bytes of a digest */
  LK_SHA1_TEXT_LEN = 28 /**< characters of a digest in base64 */
};

/**
 * SHA-1. ZooKeeper's identities of the scheme "digest" contain it; nothing in
 * latchkey relies on it for security. This code serves also a build without
 * OpenSSL.
 */
void lk__sha1(const void *bytes, size_t len, unsigned char out[LK_SHA1_LEN]);

/** The digest in base64, NUL-terminated. */
void lk__sha1_text(const void *bytes, size_t len,
                   char out[LK_SHA1_TEXT_LEN + 1]);

#endif
