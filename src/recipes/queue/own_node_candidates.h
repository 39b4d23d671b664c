/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H
#define LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H

/**
 * @file
 * Nodes that may be the own one, where names do not tell.
 */

#include "recipes/queue/own_node.h"

typedef struct lk_own_node_candidates {
  int64_t *numbers; /**< ascending; read from the end */
  size_t count;    /**< not yet read */
  size_t next;     /**< of the read whose reply comes next */
  bool found;
  bool rest_is_older; /**< those not yet read are older than the create */
  bool in_order;      /**< the numbers are in the order of creation */
  int err;
} lk_own_node_candidates;

/** Note which of the listed names may be the own node. 0, or
    LK_ERR_NO_MEMORY. */
int lk__own_node_candidates_set(lk_own_node_candidates *s, const lk_mem *mem,
                                const lk_own_node *own, const lk_bytes *names,
                                size_t count);
void lk__own_node_candidates_free(lk_own_node_candidates *s, const lk_mem *mem);

#endif
