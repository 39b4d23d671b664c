/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_SESSION_LISTING_H
#define LK_RECIPES_QUEUE_SESSION_LISTING_H

/**
 * @file
 * The list of the nodes of this session, for a queue whose list is too large.
 */

#include "recipes/queue/contender.h"

/** CLEANING_UP: request the ephemeral nodes of this session, instead of a list
    that is larger than the client accepts. */
int lk__contender_list_session(lk_contender *ct);

#endif
