/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RANDOM_H
#define LK_NET_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/** Random bytes that were read from the system in advance. All zeros: none. */
typedef struct lk_random_pool {
  size_t left;
  unsigned char bytes[256]; /**< its last `left` bytes are unused */
} lk_random_pool;

/** Replace all bytes; false: the system has no random bytes. */
bool lk__random_fill(lk_random_pool *p);
/** Use `len` bytes up; fills the pool as often as needed. */
void lk__random_take(lk_random_pool *p, void *out, size_t len);

#endif
