/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_NODE_DATA_H
#define LK_RECIPES_QUEUE_NODE_DATA_H

/**
 * @file
 * Data of contender nodes that have a meaning for locks.
 */

#include <latchkey/types.h>
#include <stdbool.h>

/** Whether `data` end with LK_ANNOUNCEMENT: the owner of the node holds. */
bool lk__is_announcement(lk_bytes data);
/** Whether `data` are the message of Curator's revocation: the owner of the
   node is asked to release. */
bool lk__is_revocation(lk_bytes data);

#endif
