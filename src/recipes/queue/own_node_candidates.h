/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H
#define LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H

/**
 * @file
 * Candidates: listed nodes that may be the own node, if its name is not unique.
 * They are read one after the other to find the own node. A revocation replaces
 * the data by which a node is recognised. So if no node with the own data is
 * found, the candidates are read again, and a revoked one is taken.
 */

#include "recipes/queue/own_node.h"

typedef struct lk_own_node_candidates {
  int64_t *numbers;   /**< sequence numbers, ascending; read from the end */
  size_t total;       /**< how many candidates there are */
  size_t count;       /**< how many of them are still to be read */
  size_t next;        /**< index behind the number whose reply comes next */
  bool found;         /**< the own node was read */
  bool saw_revoked;   /**< a revoked node was read that may be the own one */
  bool takes_revoked; /**< such a node is taken: they are read again */
  bool rest_is_older; /**< the candidates still to be read are older than the
                         create */
  bool in_order;      /**< a larger number means a later create: no overflow */
  int err;            /**< why a candidate could not be read, or 0 */
} lk_own_node_candidates;

/** Collect the listed names that may be the own node. 0, or
    LK_ERR_NO_MEMORY. */
int lk__own_node_candidates_set(lk_own_node_candidates *s, const lk_mem *mem,
                                const lk_own_node *own, const lk_bytes *names,
                                size_t count);
/** Whether to read the candidates again; if so, that is prepared. */
bool lk__own_node_candidates_rewind(lk_own_node_candidates *s);
void lk__own_node_candidates_free(lk_own_node_candidates *s, const lk_mem *mem);

#endif
