/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_SINGLE_NODE_H
#define LK_RECIPES_QUEUE_SINGLE_NODE_H

/**
 * @file
 * The contender for the lock of a single node.
 */

#include "recipes/queue/contender_states.h"

/** What lk_contender_config.machine_config points to. */
typedef struct lk_single_node_config {
  int32_t poll_ms;      /**< a waiter reads the node again after this time;
                             0: it watches the node instead */
  int32_t max_delay_ms; /**< the largest random delay before a read; 0: none */
} lk_single_node_config;

/** The contender for a node whose name is fixed, with LK_IDENTITY_NONE. */
extern const lk_contender_machine lk__single_node_machine;

#endif
