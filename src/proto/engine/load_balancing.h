/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LOAD_BALANCING_H
#define LK_PROTO_ENGINE_LOAD_BALANCING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The move of a client whose list of servers has changed. */
typedef enum lk_relocation {
  LK_RELOCATION_NONE,     /**< it stays where it is */
  LK_RELOCATION_TO_ADDED, /**< to a server that was not listed before */
  LK_RELOCATION_TO_KEPT   /**< to another one that was */
} lk_relocation;

/** How a list of servers has changed. */
typedef struct lk_list_change {
  size_t before; /**< servers of the old list */
  size_t after;  /**< servers of the new one */
  size_t kept;   /**< servers of the old list that are in the new one */
  bool listed;   /**< whether the client's own is among these */
} lk_list_change;

/**
 * Decide for one client so that many of them, spread evenly over the old list,
 * are spread evenly over the new one, and none moves without need. `random`:
 * any of 2^32 values with equal probability.
 */
lk_relocation lk__balance_load(const lk_list_change *change, uint32_t random);

#endif
