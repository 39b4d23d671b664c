/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CLEANUP_H
#define LK_RECIPES_QUEUE_CLEANUP_H

/**
 * @file
 * Deleting the own node until it is certainly gone: CLEANING_UP and FINISHED.
 */

#include "recipes/queue/contender_states.h"

/** CLEANING_UP: send the next request, if there is a connection. If the own
    node does not exist, end the cleanup. `ct` may be freed. */
void lk__cleanup_continue(lk_contender *ct);
/** CLEANING_UP: the recovery of the own node completed. `err` is the reason of
    LK_RECOVERED_FAILED. `ct` may be freed. */
void lk__cleanup_recovered(lk_contender *ct, lk_recovered result, int err);

extern const lk_contender_rules lk__rules_cleaning_up;
extern const lk_contender_rules lk__rules_finished;

#endif
