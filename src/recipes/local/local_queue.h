/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_QUEUE_H
#define LK_RECIPES_LOCAL_LOCAL_QUEUE_H

/**
 * @file
 * Owners of one client who want the same mutex, behind one node: the node
 * stands in the queue for all of them, and who lets go hands it to the next one
 * here. After LK_MAX_HANDOFFS in a row it is given back all the same, and
 * another one is put at the end of the queue, so that others have their turn.
 *
 * A queue has an attempt whenever somebody waits in it, so that the end of the
 * client reaches all of them.
 */

#include "recipes/lock/lock.h"

enum { LK_MAX_HANDOFFS = 16 };

typedef struct lk_local_queue lk_local_queue;

/** Have `l`, which was made for a mutex, queue locally. false: no memory. */
bool lk__local_queue_attach(lk_lock *l, const lk_lock_config *config);
/** The client is closed: no queue's timer may stay with it. */
void lk__local_queues_stop_timers(lk_session_lease *k);

#endif
