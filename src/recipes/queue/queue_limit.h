/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_LIMIT_H
#define LK_RECIPES_QUEUE_QUEUE_LIMIT_H

/**
 * @file
 * The refusal of a queue that is too long: timeout 0, `max_queue` and `peek`.
 */

#include "recipes/queue/contender.h"

/** Why an acquisition ends instead of waiting for its predecessors: LK_ERR_BUSY
    (`once`: it does not wait), LK_ERR_QUEUE_FULL (more than `max_queue`, unless
    that is 0); or 0. */
int lk__queue_limit_refusal(bool once, size_t max_queue, size_t predecessors);
/** Whether the contender lists the queue before it creates a node: it is
    configured to, and the list may refuse it. */
bool lk__queue_limit_needs_peek(const lk_contender *ct);
/** Log once that a queue is very long. */
void lk__queue_limit_warn(const lk_contender *ct, size_t predecessors);

#endif
