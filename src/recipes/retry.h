/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_RETRY_H
#define LK_RECIPES_RETRY_H

/**
 * @file
 * A pause before a retry. It ends early if the client ends.
 */

#include <latchkey/client.h>

/**
 * A pause before a retry. It listens to the client, so that a caller without a
 * request under way learns that the client was closed or failed to
 * authenticate. The struct must be zeroed at first, and must not be moved while
 * `running` is set.
 */
typedef struct lk_retry_pause {
  lk_timer timer;
  lk_listener listener;
  void (*over)(void *arg, int err); /**< the pause has ended */
  void *arg;
  bool running;          /**< the pause has begun and not ended */
  bool ends_at_deadline; /**< of the call: no retry follows */
} lk_retry_pause;

/** Start a pause until `end_ms`. Then `over` is called with 0. If the client
    ends first, `over` is called with the reason instead, see
    lk__client_end_err(). Not for a client that has ended. */
void lk__retry_pause_until(lk_retry_pause *p, lk_client *c, int64_t end_ms,
                           void (*over)(void *arg, int err), void *arg);
/** Start a pause of 100 ms. If `deadline_ms`, the call's deadline, comes first,
    the pause ends then, and `over` is called with LK_ERR_DEADLINE. */
void lk__retry_pause_start(lk_retry_pause *p, lk_client *c, int64_t deadline_ms,
                           void (*over)(void *arg, int err), void *arg);
/** Stop the pause; `over` is not called. No effect if it is not `running`. */
void lk__retry_pause_stop(lk_retry_pause *p, lk_client *c);

/* Lengths of pauses, each twice as long as the one before. */

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
