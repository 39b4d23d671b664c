/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_START_H
#define LK_RECIPES_QUEUE_CONTENDER_START_H

/**
 * @file
 * Creation and start of a contender: the states IDLE and PAUSED.
 */

#include "recipes/queue/contender.h"

/** Make a contender in IDLE; no request is sent. It exists until FINISHED, or
    longer for callers with a reference of their own. NULL: no memory. */
lk_contender *lk__contender_new(lk_session_lease *lease,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
                                void *arg);
/** Start. The `ended` callback may be invoked before this returns. */
void lk__contender_begin(lk_contender *ct);

extern const lk_contender_rules lk__rules_idle;
extern const lk_contender_rules lk__rules_paused;

#endif
