/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CLEANUP_H
#define LK_RECIPES_QUEUE_CLEANUP_H

#include "recipes/queue/recovery.h"

/** CLEANING_UP: do the next thing, if it can be done now. */
void lk__cleanup_go(lk_contender *ct);
/** CLEANING_UP: the recovery of the own node has ended; with `err`, if it
    failed. */
void lk__cleanup_recovered(lk_contender *ct, lk_recovered result, int err);

#endif
