/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_HARNESS_THINGS_H
#define LK_SUPPORT_HARNESS_THINGS_H

#include "support/harness.h"

/** Functions and checks that the files of the harness share. */

/** Abort with the log if `holds` is false. */
void harness_must(harness *h, bool holds, const char *what);
/** Call the test from a callback of the client. */
void harness_react(harness *h, const char *name, const char *event);
/** "ok", the name of the error, or its number, which is written to `room`. */
const char *harness_error(int err, char *room, size_t size);

harness_thing *harness_thing_add(harness *h, const char *name);
/** The newest thing with that name, or NULL. */
harness_thing *harness_thing_find(harness *h, const char *name);
/** The client was freed: check that all accepted requests have completed. */
void harness_things_freed(harness *h);
/** Free all things. */
void harness_things_done(harness *h);

/** Attach the listener `base`. */
void harness_listen_base(harness *h);
/** lk_call.on_event of every watch; `arg` is the harness_thing. */
void harness_on_event(lk_client *c, lk_watch *w, const lk_event *event,
                      void *arg);

#endif
