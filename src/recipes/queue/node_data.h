/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_NODE_DATA_H
#define LK_RECIPES_QUEUE_NODE_DATA_H

/**
 * @file
 * Data of contender nodes that have a meaning for locks.
 */

#include <latchkey/types.h>
#include <stdbool.h>

/** Whether `data` end with LK_ANNOUNCEMENT, by which the owner of the node says
    that it holds the lock. */
bool lk__is_announcement(lk_bytes data);
/** Whether `data` are the message of Curator's revocation, by which another
    client asks the owner of the node to release the lock. */
bool lk__is_revocation(lk_bytes data);

#endif
