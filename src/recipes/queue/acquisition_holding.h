/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_ACQUISITION_HOLDING_H
#define LK_RECIPES_QUEUE_ACQUISITION_HOLDING_H

/**
 * @file
 * Whether an acquisition is held: the states of its contenders taken together.
 */

#include "recipes/queue/contender.h"

/** Whether the acquisition is held, as far as is known. */
bool lk__acquisition_holds(const lk_acquisition *a);
/** Whether one of its contenders is UNSURE. */
bool lk__acquisition_is_unsure(const lk_acquisition *a);
/** The lease deadline: until then no other client can hold. */
int64_t lk__acquisition_deadline(const lk_acquisition *a);
/** Grant the acquisition if all of its contenders are held, none is UNSURE, and
    the lease is long enough. If only the lease is too short, the lease is
    renewed, and LK_NOTICE_LEASE_PROVEN follows. `parts` must be complete.
    Returns whether the acquisition is granted. */
bool lk__acquisition_try_grant(lk_acquisition *a);
/** The fencing token: the largest one of its contenders. */
uint64_t lk__acquisition_token(const lk_acquisition *a);
/** The path of the first contender's node, or NULL while that node does not
    exist. */
const char *lk__acquisition_node_path(const lk_acquisition *a);

#endif
