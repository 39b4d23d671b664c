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
/** Report LK_EVENT_REREGISTERED to persistent watches. With `late`, only to
    those that got it before they were registered (lk_watch.resumes). */
void lk__watches_notify_resumed(lk_client *c, bool late);

#endif
