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

/** How missing parents are created; their data are empty. Set `size`. */
typedef struct lk_parents_config {
  size_t size;        /**< sizeof(lk_parents_config) */
  bool containers;    /**< container nodes; else persistent ones */
  const lk_acls *acl; /**< NULL: lk_acl_open() */
} lk_parents_config;

/**
 * lk_create2() that also creates missing parents. It costs one round trip if
 * the parents exist, and two if any number of them is missing. With paths
 * longer than 1,400 bytes, or access lists of that size, it may cost more: at
 * most 1 MiB of requests is under way at a time. `parents` NULL: persistent
 * ones with lk_acl_open().
 *
 * Parents that were created stay, even if the create of the node is refused.
 * LK_ERR_NODE_EXISTS for a parent is no error. LK_ERR_NO_AUTH for a parent is
 * ignored if the parent turns out to exist: servers check the permission first.
 * If servers delete empty containers in between, they are created again, at
 * most 10 times; then the call completes with LK_ERR_NO_NODE. If the chroot is
 * missing, it completes with LK_ERR_NO_NODE at once. To create a directory that
 * may exist, treat LK_ERR_NODE_EXISTS as success.
 *
 * `done` gets the result of lk_create2(), or the error with which a missing
 * parent could not be created (LK_ERR_UNIMPLEMENTED: servers before 3.5.1 have
 * no containers).
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
/** Completes lk_delete_recursive2(). `path`: the node whose delete or list has
    ended with `err`; NULL: without an error, or if no single node is the
    reason. Borrowed until the callback returns. */
typedef void (*lk_deleted2_cb)(lk_client *c, int err, size_t deleted,
                               const char *path, void *arg);

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
 * First a delete of the node is sent. If a server refuses it since the node has
 * children, the node is listed, and its children are deleted in the same way,
 * then the node itself. So each level of the tree costs two round trips, a
 * refused delete and a list, and each 256 nodes cost one: at most 256 requests
 * are under way at a time, 16 of them lists, with paths of about 1 MiB
 * together.
 *
 * The memory needed is bounded: 4,096 names, the replies to 16 lists, and the
 * names of one directory of each level. For this purpose, while 4,096 names or
 * more are in memory, the next node is listed only when no other request is
 * under way, so the deletion goes depth first.
 *
 * `more` may be NULL; it and `done` get `arg`. With `call->repeat` the deletion
 * continues over lost connections. Nodes whose delete was executed but whose
 * reply was lost are then not counted.
 *
 * @return as a request; LK_ERR_BAD_ARGUMENT also for "/", and for the nodes of
 *         the server itself: "/zookeeper" and its descendants, in a client
 *         without a chroot, and every path, if the chroot is one of these
 *         nodes. With another chroot, "/zookeeper" is an ordinary node.
 * `done`: 0: the node was deleted; LK_ERR_NO_NODE: it did not exist; or the
 *         first other error: NO_AUTH (no READ or DELETE permission on a
 *         directory), NOT_EMPTY, CANCELLED, DEADLINE, NO_MEMORY; without
 *         `repeat` also NOT_SENT, CONNECTION_LOSS, IN_DOUBT. With `repeat`,
 *         IN_DOUBT: the reply to a delete was lost, and the deadline passed
 *         before the next request. If the client ends first: NOT_SENT (no
 *         delete is in doubt) or CLOSED.
 */
LK_API int lk_delete_recursive(lk_client *c, const char *path,
                               const lk_call *call, lk_progress_cb more,
                               lk_deleted_cb done, void *arg);
/** lk_delete_recursive() that also names the node at which it has failed. */
LK_API int lk_delete_recursive2(lk_client *c, const char *path,
                                const lk_call *call, lk_progress_cb more,
                                lk_deleted2_cb done, void *arg);

/* ---- reliable writes ----------------------------------------------------- */

/**
 * Reliable writes are retried over lost connections until their outcome is
 * known or cannot be found out (LK_ERR_IN_DOUBT), or until the deadline. At the
 * deadline a write whose reply was lost completes with LK_ERR_IN_DOUBT, another
 * one with LK_ERR_DEADLINE. After both the write may have been executed, or may
 * be executed later. A write is executed at most once.
 *
 * A write that certainly was not executed is sent again. A write whose reply
 * was lost, or whose session ended, is verified on the next connection: a
 * transaction is sent, then a read of the node. When the transaction is
 * executed, the write has been executed before it, or never will be. The
 * exception is a session that the client has given up (`give_up_ms`): servers
 * may keep it and execute the write later. Then the verification waits until
 * lk_client_abandoned_session_end(); set `timeout_ms` if that is too long.
 *
 * The client compares what it reads with the largest zxid that it had received
 * when the reply was lost, S. Servers reply in order, so the zxid of the write
 * would be larger than S. If the client has no S yet, since it has received no
 * reply, it sends a read of "/" right before the write, without waiting.
 *
 * Of the rows for a write, the first one that applies decides what follows: the
 * write is sent again, or it completes with the error or with 0.
 *
 *   write       what the read shows                     what follows
 *   create (not there is no node, and pzxid of the
 *   ephemeral)  parent is at most S                     send it again
 *               czxid of the node is at most S          LK_ERR_NODE_EXISTS
 *   create      there is no node                        send it again
 *   (ephemeral) czxid is at most S, or the node is of
 *               another session                         LK_ERR_NODE_EXISTS
 *               any other node                          0
 *   set         mzxid of the node is at most S          send it again
 *               `version` is not -1, the version of
 *               the node is `version` + 1, its czxid
 *               is at most S, and its data are not
 *               those of the set                        LK_ERR_BAD_VERSION
 *   delete      czxid of the node is at most S          send it again
 *   all         anything else                           LK_ERR_IN_DOUBT
 *
 * So LK_ERR_IN_DOUBT means that the write may have been executed, or not:
 *   - the node was created, changed or deleted as by the write, and no server
 *     can tell whether this client or another one has done so;
 *   - after a create there is no node: it was created and deleted, or never
 *     created;
 *   - the client has no permission to read the node, or no S, because the
 *     connection was lost before the first reply.
 *
 * If no other client creates, writes or deletes the node during the call, set
 * `sole`, which removes this doubt. An example is a node with a new UUID in its
 * name. Then
 *   - a create is sent again if there is no node. If there is one, the create
 *     completes with 0 if the czxid of the node is larger than S and the node
 *     has the data of the create, otherwise with LK_ERR_NODE_EXISTS; without
 *     an S, with LK_ERR_IN_DOUBT;
 *   - a set completes with 0 if the node has its data, was changed after S, and
 *     no longer has the version `version` (with -1, any version counts); with
 *     LK_ERR_NO_NODE if there is no node. Otherwise it is sent again;
 *   - a delete completes with 0 if there is no node, and otherwise is sent
 *     again.
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

/** lk_set() as a reliable write. With `version` -1, the first request
    overwrites any data. If its reply is lost and another client has written
    meanwhile, the set is not sent again (LK_ERR_IN_DOUBT), except with `sole`.
 */
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
