/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_RETRY_BACKOFF_H
#define LK_RECIPES_QUEUE_RETRY_BACKOFF_H

/**
 * @file
 * Pauses of a contender: before a retry, and before the next check of the
 * lease.
 */

#include "recipes/queue/contender.h"

/** Start the timer of a pause of `ms`. At its end, the contender continues by
    lk_contender_rules.resume of its state. */
void lk__contender_start_pause(lk_contender *ct, int64_t ms);
/** The length of the next pause before a retry: twice that of the last one, up
    to a limit, plus a random part. */
int64_t lk__contender_backoff_ms(lk_contender *ct);

#endif
