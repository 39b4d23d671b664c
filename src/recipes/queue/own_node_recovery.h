/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_RECOVERY_H
#define LK_RECIPES_QUEUE_OWN_NODE_RECOVERY_H

/**
 * @file
 * Recovering the own node after the reply to its create was lost. If the name
 * of the node is not unique, each connection loss requires a recovery. The
 * states RECOVERING and CLEANING_UP recover in the same way, and differ in what
 * they do with the result.
 */

#include "recipes/queue/contender.h"

/** Request a transaction, and behind it the list (or the single node) that
    shows whether the own node exists. 0, or why a request was refused. */
int lk__recovery_begin(lk_contender *ct);
/** Begin RECOVERING, in any machine. */
int lk__contender_enter_recovering(lk_contender *ct, lk_contender_state from);
/** The list behind the transaction completed with `err`. */
void lk__recovery_take_list(lk_contender *ct, int err, const lk_bytes *names,
                            size_t count);

extern const lk_contender_rules lk__rules_recovering;
extern const lk_contender_rules lk__rules_reading_candidates;

#endif
