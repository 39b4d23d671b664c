/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_ACQUISITION_HOLDING_H
#define LK_RECIPES_QUEUE_ACQUISITION_HOLDING_H

/**
 * @file
 * Whether an acquisition is held: the states of its contenders taken together.
 */

#include "recipes/queue/contender.h"

/** Whether it is held, as far as is known. */
bool lk__acquisition_holds(const lk_acquisition *a);
bool lk__acquisition_is_unsure(const lk_acquisition *a);
/** Until when it is certain that it is held. */
int64_t lk__acquisition_deadline(const lk_acquisition *a);
/** Its parts are all there is: it becomes whole if all of them are held, none
    is unsure, and the lease is long enough for a grant. If only that is
    missing, LK_NOTICE_LEASE_PROVEN follows when it is. Whether it has become
   whole. */
bool lk__acquisition_try_grant(lk_acquisition *a);
/** The fencing token; of several parts the largest. */
uint64_t lk__acquisition_token(const lk_acquisition *a);
/** The path of the first part's node, or NULL while there is none. */
const char *lk__acquisition_node_path(const lk_acquisition *a);

#endif
