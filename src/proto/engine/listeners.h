/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LISTENERS_H
#define LK_PROTO_ENGINE_LISTENERS_H

/**
 * @file
 * The listeners of a client, and its state as they know it.
 */

#include <latchkey/client.h>

/** The lists of listeners. A client with many subscriptions has many listeners,
    of which few have a function for replies. */
enum { LK_LISTENERS_ALL, LK_LISTENERS_OF_REPLIES, LK_LISTENER_LISTS };

/** The listeners of a client, in the order in which they were attached. */
typedef struct lk_engine_listeners {
  struct {
    lk_listener *first, *last;
  } lists[LK_LISTENER_LISTS];
  struct lk_notification *notifying; /**< the notification that began last and
                                          has not ended; NULL: there is none */
} lk_engine_listeners;

/** Enter `state` and notify the listeners. The caller has changed all other
    fields before, since a listener may call any function of the client. */
void lk__client_enter_state(lk_client *c, lk_state state, int err);
/** Notify the listeners that lk_client_close() was called. */
void lk__client_notify_closing(lk_client *c);
/** Notify the listeners of a reply, before its request completes. */
void lk__client_notify_reply(lk_client *c, const lk_reply *reply);

#endif
