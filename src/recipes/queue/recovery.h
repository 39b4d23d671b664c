/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_RECOVERY_H
#define LK_RECIPES_QUEUE_RECOVERY_H

/**
 * @file
 * Recovering the own node after the reply to its create was lost. If the name
 * of the node is not unique, each connection loss requires a recovery. The
 * states RECOVERING and CLEANING_UP recover in the same way, and differ in what
 * they do with the result.
 */

#include "recipes/queue/contender_states.h"

/* The list of the nodes of this session, which the cleanup uses if the list of
   the queue is larger than the client accepts. */

/** CLEANING_UP: request the ephemeral nodes of this session. Their names in the
    directory are passed to lk_contender_rules.listed. 0, or why the request was
    refused. */
int lk__contender_list_session(lk_contender *ct);

/* Possible own nodes: listed nodes that may be the own one, whose name is not
   unique.
   They are read one after the other to find the own node. A revocation replaces
   the data by which a node is recognised. So if no node with the own data is
   found, the possible own nodes are read again, and a revoked one is taken. */

typedef struct lk_possible_nodes {
  int64_t *numbers;   /**< sequence numbers, ascending; read from the end */
  size_t total;       /**< how many there are */
  size_t count;       /**< how many of them are still to be read */
  size_t next;        /**< index behind the number whose reply comes next */
  bool found;         /**< the own node was read */
  bool saw_revoked;   /**< a revoked node was read that may be the own one */
  bool takes_revoked; /**< such a node is taken: they are read again */
  bool rest_is_older; /**< the possible own nodes still to be read are older
                         than the create */
  bool in_order;      /**< a larger number means a later create: no overflow */
  int err;            /**< why a possible own node could not be read, or 0 */
} lk_possible_nodes;

void lk__possible_nodes_free(lk_possible_nodes *s, const lk_mem *mem);

/** Request a transaction, and behind it the list (or the single node) that
    shows whether the own node exists. 0, or why a request was refused. */
int lk__recovery_begin(lk_contender *ct);
/** Begin RECOVERING, in any machine. */
int lk__contender_enter_recovering(lk_contender *ct);
/** The list behind the transaction completed with `err`. `ct` may be freed. */
void lk__recovery_take_list(lk_contender *ct, int err, const lk_bytes *names,
                            size_t count);

extern const lk_contender_rules lk__rules_recovering;
extern const lk_contender_rules lk__rules_reading_possible_nodes;

#endif
