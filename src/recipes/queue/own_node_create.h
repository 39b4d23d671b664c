/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CREATE_H
#define LK_RECIPES_QUEUE_OWN_NODE_CREATE_H

/**
 * @file
 * Creating the own node, and the directories above it.
 */

#include "recipes/queue/contender.h"

/** Say before lk__contender_begin() that the caller has sent the create of the
    own node, in a transaction with the creates of other contenders. The caller
    reports the result by lk__contender_own_created(). All contenders of the
    transaction must be marked before the first one begins. */
void lk__contender_mark_created_jointly(lk_contender *ct);
/** The create of the own node completed; `zxid` is the node's czxid. */
void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid);
/** Request the creates of the directories. 0, or why one was refused. */
int lk__contender_create_parents(lk_contender *ct);
/** The create of the own node has shown that the directory does not exist:
    create the directory, or fail. */
void lk__contender_parent_missing(lk_contender *ct);
/** Whether the contender holds as soon as its node exists: a permit without a
    limit. */
static inline bool lk__contender_needs_no_list(const lk_contender *ct)
{
  return ct->role->is_permit && ct->config->limit == NULL;
}
/** Begin CREATING and CREATING_PARENTS, in any machine. */
int lk__contender_enter_creating(lk_contender *ct, lk_contender_state from);
int lk__contender_enter_creating_parents(lk_contender *ct,
                                         lk_contender_state from);
/** The create of the own node and the list behind it completed. `err` is the
    error of the list; that of the create is in ct->round. */
void lk__contender_judge_create(lk_contender *ct, int err,
                                const lk_bytes *names, size_t count);

extern const lk_contender_rules lk__rules_creating;
extern const lk_contender_rules lk__rules_creating_parents;

#endif
