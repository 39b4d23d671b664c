/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_SESSION_LISTING_H
#define LK_RECIPES_QUEUE_SESSION_LISTING_H

/**
 * @file
 * The list of the nodes of this session, which the cleanup uses if the list of
 * the queue is larger than the client accepts.
 */

#include "recipes/queue/contender.h"

/** CLEANING_UP: request the ephemeral nodes of this session. Their names in the
    directory are passed to lk_contender_rules.listed. 0, or why the request was
    refused. */
int lk__contender_list_session(lk_contender *ct);

#endif
