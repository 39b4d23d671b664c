/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_DIRECT_HANDOFF_H
#define LK_RECIPES_QUEUE_DIRECT_HANDOFF_H

/**
 * @file
 * Direct handoff (rule H): a grant that is proven by the deletion of the last
 * predecessor, without another list.
 */

#include "recipes/queue/contender_states.h"

/** What is known when a predecessor was deleted: the conditions of
    lk__direct_handoff_is_proven(). */
typedef struct lk_direct_handoff {
  size_t predecessors;  /**< how many predecessors are left */
  bool same_connection; /**< the deletion came on the connection of the list */
  bool own_watched;     /**< a watch on the own node was confirmed on this
                           connection and has not fired */
  bool exclusive;       /**< no other contender may hold at the same time */
  bool has_rw_writer;   /**< see lk_queue_position; by the last list */
  bool in_range;        /**< see lk_queue_position; by the last list */
  bool leased;          /**< the lease is long enough for a grant */
} lk_direct_handoff;

/** Rule H: whether the deletion alone permits the grant. Otherwise the queue
    must be listed. */
bool lk__direct_handoff_is_proven(const lk_direct_handoff *h);

/** Events or reads have shown that no predecessor is left: grant if that is
    proven, otherwise list the queue. `ct` may be freed. */
void lk__direct_handoff_try(lk_contender *ct);

#endif
