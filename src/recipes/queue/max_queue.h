/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_MAX_QUEUE_H
#define LK_RECIPES_QUEUE_MAX_QUEUE_H

/**
 * @file
 * When a contender gives up because of the length of its queue: the options
 * `once` (a timeout of 0), `max_queue` and `peek`.
 */

#include "recipes/queue/contender.h"

/** Why a contender with this number of predecessors must not wait, or 0.
    LK_ERR_BUSY: `once`, and there are predecessors. LK_ERR_QUEUE_FULL: there
    are more than `max_queue`; a `max_queue` of 0 is no limit. */
int lk__max_queue_refusal(bool once, size_t max_queue, size_t predecessors);
/** Whether the contender lists the queue before it creates a node: `peek` is
    set, and the length of the queue may refuse the contender. */
bool lk__max_queue_needs_peek(const lk_contender *ct);
/** Log a very long queue, once per client. */
void lk__max_queue_warn_if_long(const lk_contender *ct, size_t predecessors);

#endif
