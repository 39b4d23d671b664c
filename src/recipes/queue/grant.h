/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_GRANT_H
#define LK_RECIPES_QUEUE_GRANT_H

/**
 * @file
 * The grant. Before it, the own node is read if its token is not known, and
 * checked if the lease is too short. Contenders of a queue and of a single node
 * are granted alike.
 */

#include "recipes/queue/contender.h"

/** No predecessors are left at `now_ms`. Grant if the token is known and the
    lease is long enough; otherwise first read or check the own node. */
void lk__contender_try_grant(lk_contender *ct, int64_t now_ms);
/** Whether the lease is long enough for a grant at `now_ms`. */
bool lk__contender_lease_suffices(const lk_contender *ct, int64_t now_ms);

extern const lk_contender_rules lk__rules_reading_own;
extern const lk_contender_rules lk__rules_checking_own;

#endif
