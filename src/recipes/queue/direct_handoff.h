/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_DIRECT_HANDOFF_H
#define LK_RECIPES_QUEUE_DIRECT_HANDOFF_H

/**
 * @file
 * Direct handoff (rule H): a grant that is proven by the deletion of the last
 * predecessor, without another list.
 */

#include "recipes/queue/contender.h"

/** State when a predecessor was deleted, see lk__direct_handoff_is_proven(). */
typedef struct lk_direct_handoff {
  size_t predecessors;  /**< how many predecessors are left */
  bool same_connection; /**< the deletion came on the connection of the list */
  bool own_watched;     /**< a watch on the own node was confirmed on this
                           connection and has not fired */
  bool exclusive;       /**< no other contender may hold at the same time */
  bool has_rw_writer;   /**< as in lk_queue_position, by that list */
  bool in_range;        /**< as in lk_queue_position, by that list */
  bool leased;          /**< the lease is long enough for a grant */
} lk_direct_handoff;

/** Rule H: whether the deletion alone permits the grant. Otherwise a list is
    requested. */
bool lk__direct_handoff_is_proven(const lk_direct_handoff *h);

/** No predecessor is left, as events or reads show: grant, or list the queue.
 */
void lk__direct_handoff_try(lk_contender *ct);

#endif
