/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_WATCH_H
#define LK_RECIPES_QUEUE_OWN_NODE_WATCH_H

/**
 * @file
 * Reading and watching the own node.
 */

#include "recipes/queue/contender.h"

/** Read the node at the own path, with a watch, and pass the reply to `done`.
    0, or why the request was refused. */
int lk__contender_read_own(lk_contender *ct, lk_get_cb done);
/** Read the own node, with a watch. 0, or why the request was refused. */
int lk__contender_watch_own(lk_contender *ct);
/** The same, unless the node is watched, that is requested, or the node cannot
    be read. */
int lk__contender_ensure_own_watch(lk_contender *ct);
/** The access list of the own node forbids reads: note and report that the node
    is not watched. */
void lk__contender_own_unreadable(lk_contender *ct);
/** If `data` of the own node are the message of Curator's revocation, note it.
    A holder is notified at once, a waiter after its grant. */
void lk__contender_note_revocation(lk_contender *ct, const lk_bytes *data);

#endif
