/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_BACKOFF_H
#define LK_RECIPES_COMMON_BACKOFF_H

/**
 * @file
 * Lengths of pauses, each twice as long as the one before.
 */

#include <latchkey/client.h>

typedef struct lk_backoff {
  int32_t first_ms;
  int32_t max_ms;
  int64_t next_ms; /**< without its random part; 0: `first_ms` */
} lk_backoff;

/** The next pause is the first one again. */
static inline void lk__backoff_reset(lk_backoff *b)
{
  b->next_ms = 0;
}

/** The length of the pause that begins now: up to half is added at random. */
static inline int64_t lk__backoff_draw(lk_backoff *b, lk_client *c)
{
  int64_t ms = b->next_ms == 0 ? b->first_ms : b->next_ms;
  uint32_t random = 0;

  b->next_ms = ms * 2 < b->max_ms ? ms * 2 : b->max_ms;
  lk_client_random(c, &random, sizeof random);
  return ms + random % (uint32_t)(ms / 2 + 1);
}

#endif
