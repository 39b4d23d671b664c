/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_PEER_THINGS_H
#define LK_SUPPORT_PEER_THINGS_H

#include "support/peer.h"

/** Functions and checks that the files of the peer share. */

/** Abort with the log if `holds` is false. */
void peer_must(peer *p, bool holds, const char *what);
/** Call the test from a callback of the client. */
void peer_react(peer *p, const char *name, const char *event);
/** "ok", the name of the error, or its number, which is written to `room`. */
const char *peer_error(int err, char *room, size_t size);

peer_thing *peer_thing_add(peer *p, const char *name);
/** The newest thing with that name, or NULL. */
peer_thing *peer_thing_find(peer *p, const char *name);
/** The client was freed: check that all accepted requests have completed. */
void peer_things_freed(peer *p);
/** Free all things. */
void peer_things_done(peer *p);

/** Attach the listener `base`. */
void peer_listen_base(peer *p);
/** lk_call.on_event of every watch; `arg` is the peer_thing. */
void peer_on_event(lk_client *c, lk_watch *w, const lk_event *event, void *arg);

#endif
