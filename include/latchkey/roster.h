/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_ROSTER_H
#define LK_ROSTER_H

/**
 * @file
 * Rosters: who takes part. A roster has the children of a node with their data,
 * as one list: the members of a group (<latchkey/member.h>, Curator's
 * GroupMember, kazoo's Party), or the candidates of an election in the order of
 * their queue, of which the first leads (<latchkey/leader.h>).
 *
 * lk_roster_get() reads a roster once, lk_roster_subscribe() reports it now and
 * after each change. Neither creates a node. A member or candidate of the same
 * program is in the roster like any other: the report that has it comes before
 * or after its own event.
 *
 * A roster is not a snapshot: the children are read one after the other, so it
 * may have the old data of one and the new data of another. A child that is
 * deleted meanwhile is not in it. While there is no connection, nothing is
 * reported, and the last report may be outdated: see lk_client_state().
 *
 * Cost: one list, and a read of each child, which are sent together. After a
 * change, a list if a child was created or deleted, and a read of each child
 * that is new or has new data. A subscription has one watch on the directory
 * and one on each child; after a reconnect it reads all again. When it ends,
 * the watches are removed at the server, in one request each.
 *
 * Threads and callbacks: as for the client.
 */

#include <latchkey/lock.h>
#include <latchkey/subscribe.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_roster lk_roster;

/** A child of the directory. */
typedef struct lk_roster_entry {
  lk_bytes name; /**< without the directory */
  lk_bytes data; /**< as of lk_get(); empty if `err` is not 0 */
  int err;       /**< why the data cannot be read, such as LK_ERR_NO_AUTH; or
                      LK_ERR_BAD_PATH: old servers allowed characters in a name that
                      requests must not have; or 0 */
  const lk_stat *stat; /**< NULL if `err` is not 0. `czxid` is the term of a
                            leader, `ephemeral_owner` the session */
  int64_t number;      /**< of a candidate: its sequence number */
  uint64_t reserved[2];
} lk_roster_entry;

/** Options of a roster. Set `size`; 0 selects the default of every other
    option. */
typedef struct lk_roster_config {
  size_t size;   /**< sizeof(lk_roster_config) */
  bool election; /**< only the candidates of an election, ordered as their queue
                      is. false: all children, ordered by name */
  lk_layout layout; /**< of the election; a layout with a prefix has the default
                         one */
  int64_t check_ms; /**< as in lk_subscription_config, for the directory. The
                         children are never checked: a change of one that the
                         client may not read at that time can be missed */
} lk_roster_config;

/**
 * Invoked with the roster, and again after each change. `err`:
 *   0: `entries` (`count` of them) are borrowed until the callback returns;
 *   LK_ERR_NO_NODE: the directory does not exist, so there are no nodes;
 *   LK_ERR_SESSION_EXPIRED (with lk_client_config.one_session, or while the
 *     client closes), LK_ERR_AUTH_FAILED, LK_ERR_CLOSED: the roster has ended,
 * and this is the last call; only lk_roster_free() remains to be called; any
 * other: the directory cannot be read, and the last roster may be outdated; see
 * lk_subscribe_children_cb. Unless `err` is 0, `entries` is NULL and `count` 0.
 * A report waits until all children have been read. The callback may free the
 * roster and the client.
 */
typedef void (*lk_roster_cb)(lk_roster *r, int err,
                             const lk_roster_entry *entries, size_t count,
                             void *arg);

/**
 * Subscribe to the roster of the node at `path` (absolute, copied). `on_roster`
 * is the callback, not NULL. `config` NULL selects the defaults. Roster and
 * client may be freed in any order.
 *
 * @return as lk_subscribe_children(). After an error `*out` is NULL.
 */
LK_API int lk_roster_subscribe(lk_roster **out, lk_client *client,
                               const char *path, const lk_roster_config *config,
                               lk_roster_cb on_roster, void *arg);

/** End the subscription and free it; the callback is not invoked any more. NULL
    is allowed. */
LK_API void lk_roster_free(lk_roster *r);

/** Completes lk_roster_get(). `entries` is NULL unless `err` is 0, and borrowed
    until the callback returns. */
typedef void (*lk_roster_get_cb)(lk_client *c, int err,
                                 const lk_roster_entry *entries, size_t count,
                                 void *arg);

/**
 * Read the roster of the node at `path` once. `call`: NULL, or a deadline,
 * which covers all reads and the wait for a connection; a watch is refused. The
 * reads are repeated over lost connections.
 *
 * @return 0: `done` is called exactly once, and not before this function has
 *         returned, with 0; LK_ERR_NO_NODE; LK_ERR_DEADLINE; LK_ERR_NO_AUTH and
 *         other errors of the directory; LK_ERR_CLOSED, LK_ERR_AUTH_FAILED,
 *         LK_ERR_SESSION_EXPIRED. Else as lk_roster_subscribe(), or
 *         LK_ERR_DEADLINE.
 */
LK_API int lk_roster_get(lk_client *client, const char *path,
                         const lk_roster_config *config, const lk_call *call,
                         lk_roster_get_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
