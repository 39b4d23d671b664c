/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_PEER_THINGS_H
#define LK_SUPPORT_PEER_THINGS_H

#include "support/peer.h"

/** Functions that the files of the peer share. */

/** Abort with the log if it does not hold. */
void peer_must(peer *p, bool holds, const char *what);
/** Let the user do what he wants in a callback. */
void peer_react(peer *p, const char *name, const char *event);
/** "ok", or the name of the error, or its number in `room`. */
const char *peer_error(int err, char *room, size_t size);

peer_thing *peer_thing_add(peer *p, const char *name);
/** The youngest of that name, or NULL. */
peer_thing *peer_thing_find(peer *p, const char *name);
/** The client is gone: has all ended that was accepted? */
void peer_things_freed(peer *p);
/** Free them. */
void peer_things_done(peer *p);

/** Attach the listener that is always there. */
void peer_listen_base(peer *p);
/** lk_call.on_event of every watch; `arg` is its thing. */
void peer_on_event(lk_client *c, lk_watch *w, const lk_event *event, void *arg);

#endif
