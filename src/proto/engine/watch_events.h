/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCH_EVENTS_H
#define LK_PROTO_ENGINE_WATCH_EVENTS_H

#include "proto/engine/watch_table.h"

/** Report an event on `path` to the watches in `list`; if path.at is NULL, the
    path is that of each watch. One-shot watches are dropped then, and at
    LK_EVENT_ENDED all watches. */
void lk__watches_notify(lk_client *c, lk_link *list, lk_event_type type,
                        lk_bytes path, int err);
/** Report LK_EVENT_ENDED to the watches in `list`. */
void lk__watches_notify_ended(lk_client *c, lk_link *list, int err);
/** Report LK_EVENT_REREGISTERED to all persistent watches. */
void lk__watches_notify_reregistered(lk_client *c);
/** Report LK_EVENT_REREGISTERED again to the persistent watches that got it
    before they were registered (lk_watch.reported_too_early), and are
    registered now. */
void lk__watches_notify_reregistered_late(lk_client *c);

#endif
