/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_NODE_H
#define LK_RECIPES_LOCAL_LOCAL_NODE_H

/**
 * @file
 * The contender node that the requests of a local queue share: when it is
 * created and deleted.
 */

#include "recipes/local/local_queue.h"

/** Begin a contender if requests wait and none exists. */
void lk__local_node_ensure(lk_local_queue *q);
/** Delete the node; requests that wait get a new one. */
void lk__local_node_give_back(lk_local_queue *q);
/** The last holder releases: delete the node. `callbacks` of its contender from
    then on; NULL: none. */
void lk__local_node_release(lk_local_queue *q,
                            const lk_acquisition_callbacks *callbacks,
                            void *arg);
/** The contender gives up instead of waiting if the first request does. */
void lk__local_node_update_once(lk_local_queue *q);
/** The timer of a local queue. */
void lk__local_node_on_timer(lk_client *c, void *arg);

#endif
