/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_NODE_DATA_H
#define LK_RECIPES_QUEUE_NODE_DATA_H

/**
 * @file
 * What the data of a contender node can say beside those of its owner.
 */

#include <latchkey/types.h>
#include <stdbool.h>

/** Whether they end with LK_ANNOUNCEMENT: the owner holds. */
bool lk__is_announcement(lk_bytes data);
/** Whether they are the message of Curator's revocation: release. */
bool lk__is_revocation(lk_bytes data);

#endif
