/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEADER_CANDIDATE_H
#define LK_RECIPES_LEADER_CANDIDATE_H

#include <latchkey/leader.h>

/** Have the candidate free its lock when it is freed itself. */
void lk__candidate_own_lock(lk_candidate *c);

#endif
