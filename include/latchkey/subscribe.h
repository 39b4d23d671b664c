/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUBSCRIBE_H
#define LK_SUBSCRIBE_H

/**
 * @file
 * Subscriptions: the callback is invoked with the children or the data of a
 * node, first with the present state, then when the state has changed. The node
 * need not exist.
 *
 * The callback gets:
 *   - the newest state, not every change: of several changes during one read
 *     only the last is reported. There is no queue: after a slow callback, the
 *     next call has the state of that time;
 *   - no state twice in a row. A node that was deleted and created again counts
 *     as changed, even if its content is the same;
 *   - states in order: within a session no older state follows. A new session
 *     may begin at a server that lags behind, and report an older state first.
 *
 * The subscription handles:
 *   - a lost connection: nothing is reported. On the next connection the node
 *     is read before all waiting requests, and reported if it has changed. An
 *     lk_listener, or lk_client_state(), shows whether the last reported state
 *     may be outdated;
 *   - an expired session: the same, with the next session;
 *   - a read-only server, if the client accepts one (`read_only`): its state is
 *     reported like that of any other server;
 *   - a server that is busy (throttling): the read is repeated, nothing is
 *     reported;
 *   - a node that the client may not read, and any other error: reported once.
 *     The read is retried after 0.1 to 0.2 s, then after pauses that double, at
 *     least once a minute;
 *   - missing events: servers with the fix for CVE-2024-23944 (3.7.3, 3.8.4,
 *     3.9.2 and later) send no event for a node that the client may not read at
 *     that time, but remove the watch. So the Stat is compared periodically:
 *     see check_ms.
 *
 * Each reported state costs one request; a missing node costs one more. The
 * server keeps one watch. Several subscriptions of a client to one node share
 * that watch, but each sends its own requests.
 *
 * Threads, callbacks: as the client. The callback may free its subscription,
 * and the client.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_subscription lk_subscription;

/** Options of a subscription, which are copied. Set `size`; 0 selects the
    default. */
typedef struct lk_subscription_config {
  size_t size; /**< sizeof(lk_subscription_config) */
  /** The interval in ms at which the Stat of the node is compared with the
      reported state: 100 to 86,400,000. Each interval is shortened at random by
      up to a quarter. 0: 60,000. -1: never, which is safe if the READ
      permission is never removed. */
  int64_t check_ms;
} lk_subscription_config;

/**
 * Invoked with the children of the node. `err`:
 *   0: the node exists. `names` (`count` of them, in no order, without path,
 *     not NUL-terminated) and `stat` belong to the same state. A change of the
 *     node's data alone is not reported;
 *   LK_ERR_NO_NODE: the node does not exist;
 *   LK_ERR_SESSION_EXPIRED (with lk_client_config.one_session, or while the
 *   client closes), LK_ERR_AUTH_FAILED, LK_ERR_CLOSED: the subscription has
 * ended, and this is the last call; only lk_subscription_free() remains to be
 * called; any other, such as LK_ERR_NO_AUTH (READ on the node),
 * LK_ERR_NO_MEMORY, LK_ERR_TOO_MANY, LK_ERR_REPLY_TOO_BIG: the node cannot be
 * read, and the last reported state may be outdated. The read is retried; the
 * callback is invoked again when the read succeeds or fails with another error.
 * A reply that is too big breaks the connection, so after LK_ERR_REPLY_TOO_BIG
 * the pause before each retry is 25 to 52 s. `names` and `stat` are borrowed
 * until the callback returns, NULL unless `err` is 0.
 */
typedef void (*lk_subscribe_children_cb)(lk_subscription *s, int err,
                                         const lk_bytes *names, size_t count,
                                         const lk_stat *stat, void *arg);

/**
 * Invoked with the data of the node. `err` as above. `data` and `stat` belong
 * to the same state, borrowed until the callback returns, NULL unless `err` is
 * 0. Changes of the children are not reported.
 */
typedef void (*lk_subscribe_data_cb)(lk_subscription *s, int err,
                                     const lk_bytes *data, const lk_stat *stat,
                                     void *arg);

/**
 * Subscribe to the children, or to the data, of the node at `path` (absolute,
 * copied). `on_state` is the callback, not NULL. `config` NULL selects the
 * defaults. Without a connection, the callback is first invoked when one is
 * established. Client and subscription may be freed in any order.
 *
 * @return 0: `on_state` will be invoked, but not before the return;
 *         LK_ERR_BAD_PATH; LK_ERR_BAD_ARGUMENT; LK_ERR_NO_MEMORY; or another
 *         error with which a read is refused: LK_ERR_TOO_MANY, LK_ERR_CLOSED,
 *         LK_ERR_AUTH_FAILED, LK_ERR_FORKED. After an error `*out` is NULL.
 */
LK_API int lk_subscribe_children(lk_subscription **out, lk_client *client,
                                 const char *path,
                                 const lk_subscription_config *config,
                                 lk_subscribe_children_cb on_state, void *arg);
LK_API int lk_subscribe_data(lk_subscription **out, lk_client *client,
                             const char *path,
                             const lk_subscription_config *config,
                             lk_subscribe_data_cb on_state, void *arg);

/** End the subscription and free it; the callback is not invoked any more. The
    watch is removed at the server unless this client has another one of that
    kind on the node. NULL is allowed. */
LK_API void lk_subscription_free(lk_subscription *s);

/** The path of the subscription. */
LK_API const char *lk_subscription_path(const lk_subscription *s);

#ifdef __cplusplus
}
#endif
#endif
