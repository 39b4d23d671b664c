/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RANDOM_H
#define LK_NET_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

/** Random bytes that were read from the system in advance. A pool of zeros is
    empty. */
typedef struct lk_random_pool {
  size_t left; /**< how many bytes, at the end of `bytes`, are unused */
  unsigned char bytes[256];
} lk_random_pool;

/** Fill the pool with new bytes; false: the system has none. */
bool lk__random_fill(lk_random_pool *p);
/** Move `len` bytes from the pool to `out`, and refill an empty pool. */
void lk__random_take(lk_random_pool *p, void *out, size_t len);

#endif
