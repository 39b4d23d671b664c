/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_WATCH_H
#define LK_WATCH_H

/**
 * @file
 * Watches: their events, and their end. Part of <latchkey/client.h>.
 */

#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The handle of a watch: a number in the shape of a pointer, which is never
 * NULL. It is invalid once its watch has ended. The client uses the same number
 * again only after 2^32 other watches (4,096 where pointers have 32 bits).
 */
typedef struct lk_watch lk_watch;

/** Completes requests without a result. */
typedef void (*lk_done_cb)(lk_client *c, int err, void *arg);

/** Types of events; the first four are ZooKeeper's. A program treats one that
    it does not know as LK_EVENT_REREGISTERED: it reads again. */
typedef enum lk_event_type {
  LK_EVENT_CREATED = 1,
  LK_EVENT_DELETED = 2,
  LK_EVENT_CHANGED = 3,      /**< the node's data */
  LK_EVENT_CHILDREN = 4,     /**< a child was created or deleted */
  LK_EVENT_REREGISTERED = 8, /**< a persistent watch is registered again after
                                  a lost connection. Events in between are lost:
                                  read again */
  LK_EVENT_ENDED = 0 /**< the watch has ended, neither by its event nor by a
                          call of the program; see err. Changes may have been
                          missed: read again if the session goes on */
} lk_event_type;

typedef struct lk_event {
  lk_event_type type;
  lk_bytes path; /**< of the node, without the chroot;
                      NUL-terminated as well */
  int err; /**< LK_EVENT_ENDED: LK_ERR_NO_WATCHER or LK_ERR_CONNECTION_LOSS
                (see lk_watch_cb), LK_ERR_SESSION_EXPIRED, LK_ERR_CLOSED,
                LK_ERR_AUTH_FAILED, LK_ERR_UNIMPLEMENTED (a persistent watch,
                and a server before 3.6). Else 0 */
} lk_event;

/**
 * Called once for a one-shot watch, any number of times for a persistent one.
 * Watches are not merged: three reads of a node with `on_event` set three
 * watches, and one change of it calls all three. When a session has expired,
 * listeners are notified first, then all requests complete, and then the
 * watches end.
 *
 * LK_EVENT_ENDED, if it comes, is the last event of a watch. The handle of a
 * watch is valid until the callback for its last event returns.
 *
 * Usually a client receives the event of a change before any reply that shows
 * the change. After a reconnect, the event may come after such a reply if the
 * server was too busy to re-register the watches (LK_ERR_THROTTLED). The client
 * repeats that request on the same connection, and until it succeeds, replies
 * may show changes whose events come later. Such an event also goes to watches
 * that were set on the path after the reconnect, because a server names only
 * the path of an event.
 *
 * Where the client has a persistent watch on the path, a one-shot watch relies
 * on it: servers before 3.9 keep only one of the two. The one-shot watch gets
 * the first event that it waits for. It ends with LK_ERR_NO_WATCHER
 *   - when the persistent watch is removed by lk_watch_remove(), as all
 *     one-shot watches of the path do that were requested before;
 *   - after the completion of its request, if the persistent watch, which was
 *     requested before, could not be registered;
 *   - if it waits for children, when a recursive watch is added on the path, or
 *     re-registered there later than the connection was established;
 *   - if a persistent watch is added while the server was too busy to
 *     re-register it;
 *   - if an addWatch on the path has no reply at its deadline.
 * It ends with LK_ERR_CONNECTION_LOSS when the connection is lost. So does
 * every watch with `until_disconnect`.
 */
typedef void (*lk_watch_cb)(lk_client *c, lk_watch *w, const lk_event *event,
                            void *arg);

/** Persistent watches; see lk_add_watch() in <latchkey/request.h>. Other values
    are refused with LK_ERR_BAD_ARGUMENT. */
typedef enum lk_watch_mode {
  LK_WATCH_PERSISTENT =
      0,                 /**< creation, deletion, data and children of a node */
  LK_WATCH_RECURSIVE = 1 /**< creation, deletion and data of a node and all
                              nodes below it; never LK_EVENT_CHILDREN */
} lk_watch_mode;

/**
 * Cancel a watch: it has ended, and its callback is not invoked again. The
 * server keeps its watch until the connection ends, and the client ignores its
 * events. Nothing happens for a watch of this client that has ended already,
 * nor for NULL.
 */
LK_API void lk_watch_cancel(lk_client *c, lk_watch *w);

/**
 * Cancel a watch, and remove it from the server, too, which servers can since
 * 3.5.0. Whatever this returns, the watch has ended. `done` gets the server's
 * result: 0; LK_ERR_NO_WATCHER: the server had no watch any more, so its event
 * is lost; or an error of any request. After a lost connection the server has
 * no watch. `done` may be NULL.
 *
 * @return 0; else `done` is not called: LK_ERR_STATE: the watch had ended
 *         already, or there is no connection; or the server keeps its watch,
 *         since another one of this client has the same path and kind; or the
 *         request that sets the watch has no reply yet: then the watch is
 *         removed behind it. LK_ERR_UNIMPLEMENTED, LK_ERR_NO_MEMORY,
 *         LK_ERR_TOO_MANY, LK_ERR_CLOSED, LK_ERR_AUTH_FAILED, LK_ERR_FORKED.
 */
LK_API int lk_watch_remove(lk_client *c, lk_watch *w, lk_done_cb done,
                           void *arg);

#ifdef __cplusplus
}
#endif
#endif
