/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_QUEUE_H
#define LK_RECIPES_LOCAL_LOCAL_QUEUE_H

/**
 * @file
 * Lock handles of one client for the same mutex share one contender node. On
 * release, the lock is handed off to the next local request. After
 * LK_MAX_HANDOFFS in a row the node is deleted, and a new one is created at the
 * end of the queue, so that other clients are not starved.
 *
 * While requests wait, the queue has a contender. So the end of the client
 * reaches all of them.
 */

#include "recipes/lock/lock.h"

enum { LK_MAX_HANDOFFS = 16 };

typedef struct lk_local_queue lk_local_queue;

/** Let acquisitions of the mutex `l` use a local queue. false: no memory. */
bool lk__local_queue_attach(lk_lock *l, const lk_lock_config *config);
/** The client is closed: stop the timers of all its local queues. */
void lk__local_queues_stop_timers(lk_session_lease *k);

#endif
