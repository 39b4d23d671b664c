/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LOAD_BALANCING_H
#define LK_PROTO_ENGINE_LOAD_BALANCING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The move of a client whose list of servers has changed. */
typedef enum lk_relocation {
  LK_RELOCATION_NONE,     /**< the client stays at its server */
  LK_RELOCATION_TO_ADDED, /**< it moves to a server that was not in the old
                               list */
  LK_RELOCATION_TO_KEPT   /**< it moves to another server that was in the old
                               list */
} lk_relocation;

/** How a list of servers has changed. */
typedef struct lk_list_change {
  size_t before; /**< servers of the old list */
  size_t after;  /**< servers of the new list */
  size_t kept;   /**< servers that are in both lists */
  bool listed;   /**< the client's server is in both lists */
} lk_list_change;

/**
 * Decide whether one client moves. If many clients are spread evenly over the
 * old list and each decides with this function, they are spread evenly over the
 * new list, and none moves without need. `random` is uniformly distributed over
 * its 2^32 values.
 */
lk_relocation lk__choose_relocation(const lk_list_change *change,
                                    uint32_t random);

#endif
