/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H
#define LK_RECIPES_QUEUE_OWN_NODE_CANDIDATES_H

/**
 * @file
 * Candidates: listed nodes that may be the own node, if its name is not unique.
 * They are read one after the other to find the own node.
 */

#include "recipes/queue/own_node.h"

typedef struct lk_own_node_candidates {
  int64_t *numbers;   /**< sequence numbers, ascending; read from the end */
  size_t count;       /**< how many candidates are still to be read */
  size_t next;        /**< index behind the number whose reply comes next */
  bool found;         /**< the own node was read */
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
void lk__own_node_candidates_free(lk_own_node_candidates *s, const lk_mem *mem);

#endif
