/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_HANDOFF_H
#define LK_RECIPES_LOCAL_LOCAL_HANDOFF_H

/**
 * @file
 * The handoff of a held node from one local request to the next, without a
 * request to the servers.
 */

#include "recipes/local/local_queue.h"

/** Handoffs in a row. After them the node is deleted and a new one queues, so
    that other clients are not starved. */
enum { LK_MAX_HANDOFFS = 16 };

/** Whether the node is handed off to the first local request. false: none
    waits, the limit is reached, another client has asked for the release, or
    the lease is about to end. The node is deleted then. */
bool lk__local_handoff_is_allowed(const lk_local_queue *q);
/** A handoff is allowed: grant the lock to the first request, or first await a
    lease that is long enough for a grant. */
void lk__local_handoff_to_first(lk_local_queue *q);

#endif
