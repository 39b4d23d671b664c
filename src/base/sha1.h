/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SHA1_H
#define LK_BASE_SHA1_H

#include <stddef.h>

enum { LK_SHA1_LEN = 20, LK_SHA1_TEXT_LEN = 28 };

/**
 * SHA-1, which ZooKeeper names identities with. It protects nothing here, and a
 * build without OpenSSL needs it as well.
 */
void lk__sha1(const void *bytes, size_t len, unsigned char out[LK_SHA1_LEN]);

/** The same in base64, with a NUL behind. */
void lk__sha1_text(const void *bytes, size_t len,
                   char out[LK_SHA1_TEXT_LEN + 1]);

#endif
