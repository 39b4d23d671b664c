/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PREDECESSOR_WATCH_H
#define LK_RECIPES_QUEUE_PREDECESSOR_WATCH_H

/**
 * @file
 * Reading and watching predecessors, and the decision that follows: wait, list
 * the queue, or grant.
 */

#include "recipes/queue/contender.h"

/** Read the direct predecessor, and watch it. 0, or why the request was
    refused. */
int lk__predecessors_watch_direct(lk_contender *ct);
/** lk_contender_rules.reads_done of SETTING_WATCHES, WAITING and
    READING_PREDECESSORS. */
void lk__predecessors_judge(lk_contender *ct);

extern const lk_contender_rules lk__rules_reading_predecessors;

#endif
