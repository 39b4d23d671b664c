/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NODES_H
#define LK_NODES_H

/**
 * @file
 * What programs do with plain nodes beyond one request: make a node with all
 * that is missing above it, delete a node with all that is below it, and write
 * over lost connections until it is known what became of it.
 *
 * Each is one call with one `done`, as those of <latchkey/client.h>, which says
 * what callbacks may do, with which errors a call is refused on the spot, and
 * how it can end. All that is handed in is copied. `call` may be NULL; a watch
 * in it is refused. Its deadline ("Timeouts" in <latchkey/client.h>) is one over
 * everything, waiting for a connection too.
 *
 * Reads need nothing of this: with `repeat` and a deadline in lk_call a read is
 * asked again over lost connections until it is answered or the time is
 * over.
 *
 * Threads: as the client. Blocking forms are in <latchkey/sync.h>.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- with what is above and below --------------------------------------- */

/** How missing parents are made: empty, and as this says. Set `size`. */
typedef struct lk_parents_config {
  size_t size;        /**< sizeof(lk_parents_config) */
  bool containers;    /**< gone with their last child; else persistent */
  const lk_acls *acl; /**< NULL: lk_acl_open */
} lk_parents_config;

/**
 * lk_create2(), and where a parent is missing, all parents first. Costs one
 * round trip where they are there and two where they are not, however many.
 * `parents` NULL: persistent ones, open to everybody.
 *
 * Parents that were made stay, also where the node itself was refused. That
 * some exist, or that they may not be made because they exist, is no error.
 * When empty containers are swept away meanwhile they are made again, at most
 * 10 times; then it ends with LK_ERR_NO_NODE, as it does at once where the
 * chroot is missing. To have a directory and nothing else, make it, and take
 * LK_ERR_NODE_EXISTS for an answer.
 *
 * `done` gets what lk_create2() gives, or why a parent could not be made
 * (LK_ERR_UNIMPLEMENTED: no containers at a server before 3.5.1).
 * `call->repeat` is refused; see lk_create_reliable().
 */
LK_API int lk_create_with_parents(lk_client *c, const char *path, lk_bytes data,
                                  const lk_acls *acl, int flags,
                                  const lk_parents_config *parents,
                                  const lk_call *call, lk_create_cb done,
                                  void *arg);

/** Ends lk_delete_recursive(). `deleted`: how many nodes a server said it had
    deleted, also where it ended early. */
typedef void (*lk_deleted_cb)(lk_client *c, int err, size_t deleted, void *arg);

/** Asked now and then how to go on, with the nodes deleted so far. false: no
    further, and LK_ERR_CANCELLED when what is under way has been answered. */
typedef bool (*lk_progress_cb)(lk_client *c, size_t deleted, void *arg);

/**
 * Delete the node at `path` and all below it, whatever its version, from the
 * bottom up. It is not one transaction: others see the tree shrink, and what
 * was deleted before an error stays deleted. What others delete meanwhile is
 * fine. Where they make nodes meanwhile their directory is listed again, at
 * most 10 times; then it ends with LK_ERR_NOT_EMPTY.
 *
 * At most 256 requests are under way at a time, 16 of them lists, so a tree
 * costs a round trip for each 256 of its nodes, and two for each level on the
 * way down. While 4,096 names are kept in memory one list is asked for at a
 * time, so that it is one directory of each level at most.
 *
 * `more` may be NULL; it and `done` get `arg`. With `call->repeat` it goes on
 * over lost connections; what was deleted by a request whose answer was lost is
 * then not counted.
 *
 * @return as a request; LK_ERR_BAD_ARGUMENT also for "/" and for /zookeeper and
 *         what is below it, where the server keeps its own (a chroot counts:
 *         below one these are ordinary names, except "/").
 * `done`: 0: the node is gone; LK_ERR_NO_NODE: it was not there; the first
 *         other error: NO_AUTH (READ on a directory, DELETE on it), NOT_EMPTY,
 *         CANCELLED, DEADLINE, NO_MEMORY; without `repeat` NOT_SENT,
 * CONNECTION_LOSS, IN_DOUBT.
 */
LK_API int lk_delete_recursive(lk_client *c, const char *path,
                               const lk_call *call, lk_progress_cb more,
                               lk_deleted_cb done, void *arg);

/* ---- until it is known --------------------------------------------------- */

/**
 * Writes that go on over lost connections until it is known what became of
 * them, or until the deadline (LK_ERR_DEADLINE: it may be done, or yet be). A
 * write is executed once at most.
 *
 * One that certainly was not executed is sent again. One whose answer was lost,
 * or whose session ended, is looked for on the next connection, behind a
 * transaction, so that it has been executed by then or never will be. Where the
 * client gave the session up by itself (`give_up_ms`), the session may live on
 * at the servers, and execute the write later than that. Then the look waits
 * until lk_client_abandoned_session_end(): set `timeout_ms` where that is too
 * long. What the look finds, and how the call ends or goes on:
 *
 *   create  nothing, and no sibling has come or gone   sent again
 *           a node that is older than the write        LK_ERR_NODE_EXISTS
 *           an ephemeral node of this session          0
 *   set     data that are older than the write         sent again
 *           one change since `version`, to other data  LK_ERR_BAD_VERSION
 *   delete  a node that is older than the write        sent again
 *   all     anything else, or what may not be read     LK_ERR_IN_DOUBT
 *
 * Older is what an answer has shown that came before the write was lost. To
 * have one, a client that has had none at all asks for "/" in front of its
 * write.
 *
 * So LK_ERR_IN_DOUBT means that a write like this one was executed, by this
 * client or by another, and that no server can say any more which it was. Of a
 * create it may also be none; of any, where no answer came before.
 *
 * Where nobody else makes, writes or deletes the node while the call is under
 * way, there is no such doubt: set `sole`. A create then ends with 0 where
 * there is a node that is younger and has its data, with LK_ERR_NODE_EXISTS
 * where there is another one, and is sent again where there is none (and with
 * LK_ERR_IN_DOUBT where there is one and no answer came before). A set ends
 * with 0 where its data are found, a delete where its node is not; else they
 * are sent again. A name with a UUID in it is such a node; and for an ephemeral
 * one, which only its owner can have made and nobody else should delete, `sole`
 * need not be said.
 *
 * What cannot be settled: the name of a sequential node is the server's choice,
 * so its create ends with LK_ERR_IN_DOUBT if the answer was lost. An ephemeral
 * node goes with its session, so its create ends with LK_ERR_SESSION_EXPIRED.
 * Of two calls of one client for one node at the same time each may take the
 * other's write for its own.
 *
 * `call->repeat` may be set and changes nothing. A server that is too busy is
 * asked again after a pause, and so is one without a quorum: only one that has
 * settles anything. A call that begins in LK_STATE_READ_ONLY is refused.
 */

/** lk_create2() that is settled. `stat` is that of the node. */
LK_API int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                              const lk_acls *acl, int flags, bool sole,
                              const lk_call *call, lk_create_cb done,
                              void *arg);

/** lk_set() that is settled. With `version` -1 it overwrites what was there
    when it was sent, and is not sent again once others have written. */
LK_API int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                           int32_t version, bool sole, const lk_call *call,
                           lk_stat_cb done, void *arg);

/** lk_delete() that is settled. */
LK_API int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                              bool sole, const lk_call *call, lk_done_cb done,
                              void *arg);

#ifdef __cplusplus
}
#endif
#endif
