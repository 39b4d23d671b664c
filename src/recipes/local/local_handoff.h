/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_HANDOFF_H
#define LK_RECIPES_LOCAL_LOCAL_HANDOFF_H

/**
 * @file
 * The handoff of a held node from one local request to the next, without a
 * request to the servers.
 */

#include "recipes/local/local_queue.h"

/** The most handoffs of one node. After them the node is deleted, and a new
    node queues, so that other clients are not starved. */
enum { LK_MAX_HANDOFFS = 16 };

/** Whether the held node may be handed off to the first local request. It must
    be deleted instead if no request waits, the limit is reached, another client
    has asked for the release, the lease is about to end, or a guarded multi of
    the last holder may be executed later, when the next one holds. */
bool lk__local_handoff_is_allowed(const lk_local_queue *q);
/** Grant the lock to the first request, if the lease is long enough. Otherwise
    renew the lease; a notice of the contender then starts the next attempt. For
    a handoff that is allowed. */
void lk__local_handoff_to_first(lk_local_queue *q);

#endif
