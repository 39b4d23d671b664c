/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_PAUSE_H
#define LK_RECIPES_QUEUE_CONTENDER_PAUSE_H

/**
 * @file
 * Pauses of a contender, for an overloaded server.
 */

#include "recipes/queue/contender.h"

/** Pause; the state's `connected` follows. */
void lk__contender_start_pause(lk_contender *ct, int64_t ms);
/** How long: doubled with each pause in a row, plus a random part. */
int64_t lk__contender_pause_ms(lk_contender *ct);

#endif
