/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CREATE_H
#define LK_RECIPES_QUEUE_OWN_NODE_CREATE_H

/**
 * @file
 * Creating the own node, and the directories above it.
 */

#include "recipes/queue/contender.h"

/** Before lk__contender_begin(): the own node is created in one transaction
   with those of other contenders; lk__contender_own_created() reports the
   result. Mark all of these contenders, then begin them. */
void lk__contender_mark_created_jointly(lk_contender *ct);
/** The create completed. `zxid`: its czxid. */
void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid);
/** Request the creates of the directories. 0, or why one was refused. */
int lk__contender_create_parents(lk_contender *ct);
/** The directory does not exist. */
void lk__contender_parent_missing(lk_contender *ct);
/** A permit that does not count the others: its node is enough. */
static inline bool lk__contender_needs_no_list(const lk_contender *ct)
{
  return ct->role->counts && ct->config->limit == NULL;
}
/** Begin CREATING and CREATING_PARENTS, in any machine. */
int lk__contender_enter_creating(lk_contender *ct, lk_contender_state from);
int lk__contender_enter_creating_parents(lk_contender *ct,
                                         lk_contender_state from);
/** A create and a list completed, the list with `err`. */
void lk__contender_judge_create(lk_contender *ct, int err,
                                const lk_bytes *names, size_t count);

extern const lk_contender_rules lk__rules_creating;
extern const lk_contender_rules lk__rules_creating_parents;

#endif
