/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_MAX_QUEUE_H
#define LK_RECIPES_QUEUE_MAX_QUEUE_H

/**
 * @file
 * The refusal of a queue that is too long: timeout 0, `max_queue` and `peek`.
 */

#include "recipes/queue/contender.h"

/** Why an acquisition ends instead of waiting for its predecessors: LK_ERR_BUSY
    (`once`: it does not wait), LK_ERR_QUEUE_FULL (more than `max_queue`, unless
    that is 0); or 0. */
int lk__max_queue_refusal(bool once, size_t max_queue, size_t predecessors);
/** Whether the contender lists the queue before it creates a node: it is
    configured to, and the list may refuse it. */
bool lk__max_queue_needs_peek(const lk_contender *ct);
/** Log once that a queue is very long. */
void lk__max_queue_warn_if_long(const lk_contender *ct, size_t predecessors);

#endif
