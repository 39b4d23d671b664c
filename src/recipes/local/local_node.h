/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_NODE_H
#define LK_RECIPES_LOCAL_LOCAL_NODE_H

/**
 * @file
 * The contender that the requests of a local queue share: when it begins, and
 * when its node is deleted.
 */

#include "recipes/local/local_queue.h"

/** Begin a contender if requests wait and there is no contender. If there is
    still none afterwards, report the queued ends at once, since a closed client
    fires no timer. */
void lk__local_node_begin_if_needed(lk_local_queue *q);
/** Delete the node, which no request holds. Requests that wait get a new one.
 */
void lk__local_node_give_back(lk_local_queue *q);
/** The holder releases, and the node is not handed off: delete it. `callbacks`
    are those of its contender from then on; NULL: the end of the cleanup is not
    reported. */
void lk__local_node_release(lk_local_queue *q,
                            const lk_acquisition_callbacks *callbacks,
                            void *arg);
/** Set the contender's option `once` to that of the first request. */
void lk__local_node_update_once(lk_local_queue *q);
/** lk_timer.fire of a local queue: report queued ends, and hand off or delete a
    node that no request holds. */
void lk__local_node_on_timer(lk_client *c, void *arg);

#endif
