/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NODES_H
#define LK_NODES_H

/**
 * @file
 * Operations on nodes that need several requests: create a node with its
 * missing parents, delete a node with its descendants, and reliable writes,
 * which are retried over lost connections until their outcome is known.
 *
 * Each is one call with one `done`, as in <latchkey/client.h>. That header says
 * what callbacks may do, with which errors a call is refused, and how it can
 * complete. All arguments are copied. `call` may be NULL; a watch in it is
 * refused. Its deadline ("Timeouts" in <latchkey/client.h>) applies to the
 * whole operation, including the wait for a connection.
 *
 * Reads need no such function: with `repeat` in lk_call a read is sent again
 * over lost connections until its reply arrives or its deadline is over.
 *
 * Threads: as the client. Blocking forms are in <latchkey/sync.h>.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parents and descendants -------------------------------------------- */

/** How missing parents, which are empty, are created. Set `size`. */
typedef struct lk_parents_config {
  size_t size;        /**< sizeof(lk_parents_config) */
  bool containers;    /**< container nodes; else persistent ones */
  const lk_acls *acl; /**< NULL: lk_acl_open */
} lk_parents_config;

/**
 * lk_create2() that creates all parents first if one is missing. This costs one
 * round trip if the parents exist, and two if any number of them is missing.
 * `parents` NULL: persistent ones with lk_acl_open.
 *
 * Parents that were created stay, even if the create of the node is refused. An
 * error for an existing parent (LK_ERR_NODE_EXISTS, LK_ERR_NO_AUTH) is ignored.
 * If servers delete empty containers in between, they are created again, at
 * most 10 times; then the call completes with LK_ERR_NO_NODE. If the chroot is
 * missing, it completes with LK_ERR_NO_NODE at once. To create a directory that
 * may exist, treat LK_ERR_NODE_EXISTS as success.
 *
 * `done` gets the result of lk_create2(), or the error of a parent's create
 * (LK_ERR_UNIMPLEMENTED: servers before 3.5.1 have no containers).
 * `call->repeat` is refused; see lk_create_reliable().
 */
LK_API int lk_create_with_parents(lk_client *c, const char *path, lk_bytes data,
                                  const lk_acls *acl, int flags,
                                  const lk_parents_config *parents,
                                  const lk_call *call, lk_create_cb done,
                                  void *arg);

/** Completes lk_delete_recursive(). `deleted`: the number of nodes deleted, as
    far as replies were received; also after an error. */
typedef void (*lk_deleted_cb)(lk_client *c, int err, size_t deleted, void *arg);

/** Invoked after each reply with the number of nodes deleted so far. If it
    returns false, no more requests are sent, and the call completes with
    LK_ERR_CANCELLED after the replies to those under way. */
typedef bool (*lk_progress_cb)(lk_client *c, size_t deleted, void *arg);

/**
 * Delete the node at `path` and its descendants, with any version, from the
 * bottom up. It is not one transaction: other clients see the tree shrink, and
 * nodes that were deleted before an error stay deleted. Nodes that other
 * clients delete in between are no error. If they create nodes in between, the
 * directory is listed again, at most 10 times; then the call completes with
 * LK_ERR_NOT_EMPTY.
 *
 * At most 256 requests are under way at a time, 16 of them lists. So a tree
 * costs one round trip for each 256 of its nodes, and two for each level on the
 * way down. While 4,096 names or more are in memory, only one list is requested
 * at a time. So memory is bounded by 4,096 names, the 16 lists under way, and
 * one directory of each level.
 *
 * `more` may be NULL; it and `done` get `arg`. With `call->repeat` the deletion
 * continues over lost connections. Nodes whose delete was executed but whose
 * reply was lost are then not counted.
 *
 * @return as a request; LK_ERR_BAD_ARGUMENT also for "/", and for /zookeeper
 *         and its descendants, the nodes of the server itself. A client whose
 *         chroot is not below /zookeeper has no such nodes: only "/" is
 *         refused.
 * `done`: 0: the node was deleted; LK_ERR_NO_NODE: it did not exist; or the
 *         first other error: NO_AUTH (no READ or DELETE permission on a
 *         directory), NOT_EMPTY, CANCELLED, DEADLINE, NO_MEMORY; without
 *         `repeat` also NOT_SENT, CONNECTION_LOSS, IN_DOUBT.
 */
LK_API int lk_delete_recursive(lk_client *c, const char *path,
                               const lk_call *call, lk_progress_cb more,
                               lk_deleted_cb done, void *arg);

/* ---- reliable writes ----------------------------------------------------- */

/**
 * Reliable writes are retried over lost connections until their outcome is
 * known or cannot be found out (LK_ERR_IN_DOUBT), or until the deadline. After
 * LK_ERR_DEADLINE the write may have been executed, or may be executed later. A
 * write is executed at most once.
 *
 * A write that certainly was not executed is sent again. A write whose reply
 * was lost, or whose session ended, is verified on the next connection: a
 * transaction is sent, then a read of the node. When the transaction is
 * executed, the write has been executed before it, or never will be. The
 * exception is a session that the client has given up (`give_up_ms`): servers
 * may keep it and execute the write later. Then the verification waits until
 * lk_client_abandoned_session_end(); set `timeout_ms` if that is too long. The
 * result of the read decides:
 *
 *   create  no node, and no child of the parent was
 *           created or deleted since the write          sent again
 *           a node that is older than the write         LK_ERR_NODE_EXISTS
 *           an ephemeral node of this session           0
 *   set     data that are older than the write          sent again
 *           one change since `version`, to other data   LK_ERR_BAD_VERSION
 *   delete  a node that is older than the write         sent again
 *   all     any other state, or no permission to read   LK_ERR_IN_DOUBT
 *
 * A state is older than the write if its zxid is at most the largest zxid that
 * the client had received when the reply was lost. Servers reply in order, so
 * the write would have a larger one. A client that has received no reply yet
 * reads "/" before its write, to receive a zxid.
 *
 * So LK_ERR_IN_DOUBT means that the node shows a change like that of the write,
 * made by this client or by another one, and no server can tell by which. It
 * does not prove that the write was executed:
 *   - after a create, the node may be missing because it was created and
 *     deleted, or because it was never created;
 *   - if the connection was lost before the first reply, no state can be proven
 *     older than the write.
 *
 * If no other client creates, writes or deletes the node during the call, set
 * `sole`, which removes this doubt. An example is a node with a new UUID in its
 * name. Then
 *   - a create completes with 0 if there is a node that is not older than the
 *     write and has its data, and with LK_ERR_NODE_EXISTS if there is another
 *     node. Without a node it is sent again. Only if there is a node and the
 *     client had not received any reply, it completes with LK_ERR_IN_DOUBT;
 *   - a set completes with 0 if the node has its data, and a delete if the node
 *     does not exist; otherwise they are sent again. A set of a missing node
 *     completes with LK_ERR_NO_NODE.
 * Ephemeral nodes need no `sole`: only their owner can have created them, and
 * other clients should not delete them.
 *
 * Limits: the server chooses the name of a sequential node, so its create
 * completes with LK_ERR_IN_DOUBT if the reply was lost. If the session ends
 * during the create of an ephemeral node, the call completes with
 * LK_ERR_SESSION_EXPIRED, since the node is gone in any case. Two concurrent
 * calls of one client for one node may each take the other's write for their
 * own.
 *
 * `call->repeat` has no effect. A request is repeated after a pause if the
 * server is too busy or is a read-only server, which cannot decide an outcome.
 * A call that begins in LK_STATE_READ_ONLY is refused.
 */

/** lk_create2() as a reliable write. `stat` is that of the node. */
LK_API int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                              const lk_acls *acl, int flags, bool sole,
                              const lk_call *call, lk_create_cb done,
                              void *arg);

/** lk_set() as a reliable write. With `version` -1 it overwrites any data. It
    is not sent again after a write of another client. */
LK_API int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                           int32_t version, bool sole, const lk_call *call,
                           lk_stat_cb done, void *arg);

/** lk_delete() as a reliable write. */
LK_API int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                              bool sole, const lk_call *call, lk_done_cb done,
                              void *arg);

#ifdef __cplusplus
}
#endif
#endif
