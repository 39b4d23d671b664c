/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_WAITING_H
#define LK_RECIPES_QUEUE_WAITING_H

/**
 * @file
 * Waiting for the direct predecessor, with watches on it and on the own node.
 */

#include "recipes/queue/contender.h"

/** A heartbeat is being sent: watch the own node if it is not watched, so that
    its deletion is noticed while several predecessors are left. */
void lk__waiter_supervise_own(lk_contender *ct);

extern const lk_contender_rules lk__rules_setting_watches;
extern const lk_contender_rules lk__rules_waiting;

#endif
