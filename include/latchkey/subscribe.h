/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUBSCRIBE_H
#define LK_SUBSCRIBE_H

/**
 * @file
 * Subscriptions: to be told which children a node has, or what it holds, at
 * once and after every change, whether it exists or not.
 *
 * What is told:
 *   - the newest state, not every change: of several that come while one is
 *     being read only the last is told. There is no queue; however long a
 *     callback takes, the next call says how things stand then;
 *   - nothing twice in a row. A node that was deleted and made anew is another
 *     one, even if it looks the same: that is told;
 *   - in order: within a session what is told never goes back. A new session
 *     may begin at a server that lags, and show an older state first.
 *
 * What the caller need not see to:
 *   - a lost connection: nothing is told, and what was told last stays what is
 *     known. On the next one the node is read again, ahead of the requests that
 *     were waiting, and told if it has changed. Whether what one has may be old
 *     says lk_client_state(); an lk_listener is told;
 *   - an expired session: the same, with the next session;
 *   - a server without a quorum, where the client takes one (`read_only`): it
 *     is read like any other, and what it shows is told;
 *   - a server that is busy (throttling): asked again, nothing is told;
 *   - a node that may not be read, and any other error: told once, then tried
 *     again after 0.1 s and ever more slowly, at least once a minute;
 *   - events that never come: servers with the fix for CVE-2024-23944 (3.7.3,
 *     3.8.4, 3.9.2 and later) keep quiet about a node that may not be read at
 *     the moment, and use up the watch. So the Stat is compared from time to
 *     time: see check_ms.
 *
 * The first state costs a request, and so does each that is told after it; a
 * node that is missing, one more. One watch stands on the server. Several
 * subscriptions of a client to one node share that, and ask each for itself.
 *
 * Threads, callbacks: as the client. The callback may free its subscription,
 * and the client.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_subscription lk_subscription;

/** Options of a subscription. Set `size`, leave at 0 what should be as usual.
    Copied. */
typedef struct lk_subscription_config {
  size_t size; /**< sizeof(lk_subscription_config) */
  /** How often the Stat of the node is compared with what was told, in ms, a
      bit sooner by chance: 100 to 86,400,000. 0: 60,000; -1: never, right where
      nobody takes away the permission to read. */
  int32_t check_ms;
} lk_subscription_config;

/**
 * Told of children. `err`:
 *   0: the node is there. `names` (`count` of them, in no order, without path,
 *     not NUL-terminated) and `stat` are those of one moment. A change of the
 *     node's data alone is not told;
 *   LK_ERR_NO_NODE: there is no such node;
 *   LK_ERR_SESSION_EXPIRED (with lk_client_config.one_session, else never),
 *   LK_ERR_AUTH_FAILED, LK_ERR_CLOSED: the subscription is over, this is the
 *     last call; only lk_subscription_free() is of use;
 *   any other, such as LK_ERR_NO_AUTH (READ on the node), LK_ERR_TOO_BIG (the
 *     answer; each try breaks the connection, at most every 25 s),
 *     LK_ERR_NO_MEMORY, LK_ERR_TOO_MANY: it cannot be read, and what was told
 *     before may be old. It goes on trying: the next call tells what came of
 *     that.
 * `names` and `stat` are borrowed until it returns, NULL unless `err` is 0.
 */
typedef void (*lk_subscribe_children_cb)(lk_subscription *s, int err,
                                         const lk_bytes *names, size_t count,
                                         const lk_stat *stat, void *arg);

/**
 * Told of data. `err` as above. `data` and `stat` are those of one moment,
 * borrowed until it returns, NULL unless `err` is 0. A child that comes or goes
 * is not told.
 */
typedef void (*lk_subscribe_data_cb)(lk_subscription *s, int err,
                                     const lk_bytes *data, const lk_stat *stat,
                                     void *arg);

/**
 * Be told of the children, or of the data, of the node at `path` (absolute,
 * copied), which need not exist, by calls of `told`, which is not NULL.
 * `config` NULL: as usual. Also while there is no connection: the first call
 * comes when there is one. `client` must outlive the subscription or be freed
 * first.
 *
 * @return 0: `told` will be called, and not before this returned;
 *         LK_ERR_BAD_PATH; LK_ERR_BAD_ARGUMENT; LK_ERR_NO_MEMORY; or what else
 *         a read is refused with: LK_ERR_TOO_MANY, LK_ERR_CLOSED,
 *         LK_ERR_AUTH_FAILED, LK_ERR_FORKED. `out` gets NULL then.
 */
LK_API int lk_subscribe_children(lk_subscription **out, lk_client *client,
                                 const char *path,
                                 const lk_subscription_config *config,
                                 lk_subscribe_children_cb told, void *arg);
LK_API int lk_subscribe_data(lk_subscription **out, lk_client *client,
                             const char *path,
                             const lk_subscription_config *config,
                             lk_subscribe_data_cb told, void *arg);

/** End it and free; `told` is not called any more. The server is told to drop
    the watch unless another one here is on the same thing. NULL is fine. */
LK_API void lk_subscription_free(lk_subscription *s);

/** The path it was made for. */
LK_API const char *lk_subscription_path(const lk_subscription *s);

#ifdef __cplusplus
}
#endif
#endif
