/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_REQUEST_H
#define LK_REQUEST_H

/**
 * @file
 * Requests for one node. Part of <latchkey/client.h>, which describes what all
 * requests have in common, such as the errors of any request. All arguments are
 * copied. The comments list the errors that are specific to a request, without
 * LK_ERR_; in parentheses is the permission that is missing. "Since" names the
 * first ZooKeeper version whose servers know the request; others complete it
 * with LK_ERR_UNIMPLEMENTED.
 */

#include <latchkey/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a request without a connection does. Other values are refused with
    LK_ERR_BAD_ARGUMENT. */
typedef enum lk_offline {
  LK_OFFLINE_WAIT = 0, /**< it waits for a connection */
  /** It does not wait. While the client pauses between its attempts, it is
      refused with LK_ERR_NOT_CONNECTED. While an attempt is under way or due,
      as the first one of a new client, it is accepted, and completes with
      LK_ERR_NOT_SENT if the attempt fails. */
  LK_OFFLINE_FAIL = 1
} lk_offline;

/**
 * Names a request for lk_request_cancel(). The memory is the caller's: zero it
 * first. It must stay until the request has completed, whose callback may free
 * it. A call that is refused does not set it.
 */
typedef struct lk_request_handle {
  struct lk_request *request; /**< the client's; NULL: it has completed */
  void *reserved;
} lk_request_handle;

/**
 * Options of one request; NULL stands for none. Set `size`.
 *
 * A watch may be set by lk_exists(), lk_get(), lk_get_children() and
 * lk_get_config(): give `on_event`. The watch is set when the request completes
 * with 0 (lk_exists(): also with LK_ERR_NO_NODE, for the creation). If the
 * request fails, the watch has ended when `done` is called, and `on_event` is
 * never called.
 */
typedef struct lk_call {
  size_t size;        /**< sizeof(lk_call) */
  int64_t timeout_ms; /**< complete with LK_ERR_DEADLINE after so long; 0:
                           never. See "Timeouts" in <latchkey/client.h> */
  bool repeat;        /**< reads and sync: repeat after a lost connection. For
                           writes: LK_ERR_BAD_ARGUMENT */
  bool until_disconnect; /**< the watch ends when the connection does; other
                              watches are registered again on the next one,
                              but see lk_watch_cb */
  lk_offline offline;    /**< with LK_OFFLINE_FAIL `repeat` is refused with
                              LK_ERR_BAD_ARGUMENT. Calls that send several
                              requests wait: they refuse it, too */
  lk_watch_cb on_event;  /**< NULL: no watch */
  void *watch_arg;
  lk_watch **watch;    /**< gets the handle, before the call returns, unless the
                            call is refused; or NULL */
  int64_t deadline_ms; /**< complete with LK_ERR_DEADLINE then; if it has passed
                            already, the call is refused; 0: never */
  lk_request_handle *handle; /**< is set to name the request; or NULL. Calls
                                that send several requests refuse it with
                                  LK_ERR_BAD_ARGUMENT */
} lk_call;

/**
 * Complete a request that was not sent with LK_ERR_CANCELLED, before this
 * returns. It will never be sent.
 *
 * @return 0; LK_ERR_STATE: it was sent already, or is completing for another
 *         reason; or it has completed; LK_ERR_FORKED.
 */
LK_API int lk_request_cancel(lk_client *c, lk_request_handle *h);

/** `create` flags. Other values are refused with LK_ERR_BAD_ARGUMENT. */
enum lk_create_flags {
  LK_PERSISTENT = 0,
  LK_EPHEMERAL = 1,
  LK_SEQUENTIAL = 2, /**< may be combined with the two above */
  LK_CONTAINER = 4   /**< deleted after its last child; since 3.5.1 */
};

/** `path`: of the node, with its sequence number, without chroot,
    NUL-terminated. `stat` is NULL after lk_create(), unless its flags have
    LK_CONTAINER. Both are NULL unless err is 0. */
typedef void (*lk_create_cb)(lk_client *c, int err, const char *path,
                             const lk_stat *stat, void *arg);
/** `stat` NULL unless err is 0. */
typedef void (*lk_stat_cb)(lk_client *c, int err, const lk_stat *stat,
                           void *arg);
/** `data` and `stat` NULL unless err is 0. */
typedef void (*lk_get_cb)(lk_client *c, int err, const lk_bytes *data,
                          const lk_stat *stat, void *arg);
/** `names` without path, in no order, each not empty and without "/" and NUL;
    not NUL-terminated: print them by LK_FMT. `stat` NULL unless err is 0. */
typedef void (*lk_children_cb)(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg);

/** `acl` and `stat` NULL unless err is 0. */
typedef void (*lk_acl_cb)(lk_client *c, int err, const lk_acls *acl,
                          const lk_stat *stat, void *arg);
/** `paths` in no order; not NUL-terminated. */
typedef void (*lk_paths_cb)(lk_client *c, int err, const lk_bytes *paths,
                            size_t count, void *arg);
typedef void (*lk_count_cb)(lk_client *c, int err, int32_t count, void *arg);
/** `ids` in no order. */
typedef void (*lk_identities_cb)(lk_client *c, int err, const lk_identity *ids,
                                 size_t count, void *arg);

/**
 * Create a node. `acl` NULL: lk_acl_open(). lk_create2() also gives the Stat;
 * since 3.5.0. Errors: NO_NODE (no parent), NODE_EXISTS, NO_AUTH (CREATE on the
 * parent), INVALID_ACL, NO_CHILDREN_FOR_EPHEMERALS, QUOTA_EXCEEDED;
 * UNIMPLEMENTED for containers at a server before 3.5.1.
 * After LK_ERR_IN_DOUBT, lk_exists() finds out whether a node with a unique
 * name was created; <latchkey/nodes.h> has creates that do so.
 */
LK_API int lk_create(lk_client *c, const char *path, lk_bytes data,
                     const lk_acls *acl, int flags, const lk_call *call,
                     lk_create_cb done, void *arg);
LK_API int lk_create2(lk_client *c, const char *path, lk_bytes data,
                      const lk_acls *acl, int flags, const lk_call *call,
                      lk_create_cb done, void *arg);

/** The longest TTL, some 34 years. */
#define LK_TTL_MAX_MS INT64_C(0xffffffffff)

/**
 * Create a node that servers delete when it has no children and was not changed
 * for `ttl_ms`, 1 to LK_TTL_MAX_MS. They check that once a minute. `flags`:
 * LK_PERSISTENT or LK_SEQUENTIAL; anything else is refused with
 * LK_ERR_BAD_ARGUMENT and never sent, since an invalid TTL can crash a server,
 * and crash it again at each restart. Since 3.5.3. Errors: as lk_create2();
 * UNIMPLEMENTED also if the server was not started with
 * zookeeper.extendedTypesEnabled.
 */
LK_API int lk_create_ttl(lk_client *c, const char *path, lk_bytes data,
                         const lk_acls *acl, int flags, int64_t ttl_ms,
                         const lk_call *call, lk_create_cb done, void *arg);

/** Delete a node if its version is `version`; -1: any. Errors: NO_NODE,
    BAD_VERSION, NOT_EMPTY, NO_AUTH (DELETE on the parent). */
LK_API int lk_delete(lk_client *c, const char *path, int32_t version,
                     const lk_call *call, lk_done_cb done, void *arg);

/** Get the Stat of a node, or NO_NODE. A watch is set in both cases: for
    changes of the node, or for its creation. Other errors: NO_AUTH (READ) from
    servers 3.8.4 and 3.9.2 on. */
LK_API int lk_exists(lk_client *c, const char *path, const lk_call *call,
                     lk_stat_cb done, void *arg);

/** Get data and Stat of a node. Errors: NO_NODE (no watch is set), NO_AUTH
    (READ). */
LK_API int lk_get(lk_client *c, const char *path, const lk_call *call,
                  lk_get_cb done, void *arg);

/** Replace the data of a node if its version is `version`; -1: any. Errors:
    NO_NODE, BAD_VERSION, NO_AUTH (WRITE), QUOTA_EXCEEDED. */
LK_API int lk_set(lk_client *c, const char *path, lk_bytes data,
                  int32_t version, const lk_call *call, lk_stat_cb done,
                  void *arg);

/** Get the names of the children and the Stat of a node. Errors: NO_NODE (no
    watch is set), NO_AUTH (READ). */
LK_API int lk_get_children(lk_client *c, const char *path, const lk_call *call,
                           lk_children_cb done, void *arg);

/** Get the number of descendants of a node, at any depth, without the node
    itself. Since 3.6.0. Errors: NO_NODE, NO_AUTH (READ). */
LK_API int lk_count_descendants(lk_client *c, const char *path,
                                const lk_call *call, lk_count_cb done,
                                void *arg);

/** Get the paths of the ephemeral nodes of this session that start with
    `prefix`, any text that starts with "/": the prefix "/a" finds "/ab", too.
    NULL: all, or all in the chroot. Since 3.6.0. */
LK_API int lk_ephemerals(lk_client *c, const char *prefix, const lk_call *call,
                         lk_paths_cb done, void *arg);

/** Get access list and Stat of a node. Without ADMIN permission, the ids of
    digests are "user:x". Errors: NO_NODE, NO_AUTH (READ or ADMIN). */
LK_API int lk_get_acl(lk_client *c, const char *path, const lk_call *call,
                      lk_acl_cb done, void *arg);

/** Replace the access list of a node if the version of the list
    (lk_stat.aversion) is `version`; -1: any. `acl` NULL: LK_ERR_BAD_ARGUMENT.
    Fires no watch. Errors: NO_NODE, BAD_VERSION, INVALID_ACL, NO_AUTH
    (ADMIN). */
LK_API int lk_set_acl(lk_client *c, const char *path, const lk_acls *acl,
                      int32_t version, const lk_call *call, lk_stat_cb done,
                      void *arg);

/**
 * Watch the node at `path`, which need not exist, and with LK_WATCH_RECURSIVE
 * all nodes below it, until the watch is cancelled or the session ends:
 * ZooKeeper's persistent watches. `call->on_event` must be set. The watch is
 * set when `done` gets 0. Events may come before `done`; read the node after
 * `done`. Since 3.6.0.
 *
 * After a lost connection the watch is registered again, or ends if
 * `until_disconnect` is set. When it is registered again, it gets
 * LK_EVENT_REREGISTERED: read the node in this callback, since servers do not
 * report to a persistent watch what it missed meanwhile. The read is sent after
 * the registration, and after the requests that waited for the connection; no
 * event of that connection comes before LK_EVENT_REREGISTERED. If the server
 * has refused the registration because it was busy (LK_ERR_THROTTLED), a second
 * LK_EVENT_REREGISTERED comes when it has accepted it: read the node again
 * then. An expired session ends the watch as it ends every watch.
 *
 * After a reconnect, a recursive watch may get an event twice if this client
 * also has a one-shot watch on a node below. Servers do report to a one-shot
 * watch what it missed, and the client passes such an event to both watches.
 *
 * Servers from 3.7.3, 3.8.4 and 3.9.2 on send no event of a node that the
 * client has no permission to read at that moment. The client then learns of
 * the change with a later event of the node, or never.
 *
 * Other watches of this client on the same node work as well, except that one
 * node cannot have both modes: the second mode is refused with
 * LK_ERR_WATCH_MODE. One-shot watches on the same node rely on this one and may
 * end with it: see lk_watch_cb. A node with a recursive watch has no
 * LK_EVENT_CHILDREN: to get that event, too, set a one-shot watch on the node
 * by lk_get_children().
 */
LK_API int lk_add_watch(lk_client *c, const char *path, lk_watch_mode mode,
                        const lk_call *call, lk_done_cb done, void *arg);

/** Let the server catch up with its leader: when `done` gets 0, later reads on
    this connection see all that was committed before the sync. It is not a
    quorum operation: a deposed leader may reply (ZOOKEEPER-1675). The node need
    not exist, and its access list is not checked. */
LK_API int lk_server_sync(lk_client *c, const char *path, const lk_call *call,
                          lk_done_cb done, void *arg);

/**
 * Add an identity to this client; the arguments are copied. It is sent on every
 * connection from now on, before all requests. A wrong digest password is not
 * an error but another identity. `done` is called once, when a server has
 * accepted the identity for the first time, on this connection or a later one;
 * LK_ERR_AUTH_FAILED is final for the client.
 */
LK_API int lk_add_auth(lk_client *c, const char *scheme, lk_bytes auth,
                       lk_done_cb done, void *arg);

/** Get the identities of this client at the server, "ip" among them. Since
    3.7.0. */
LK_API int lk_who_am_i(lk_client *c, const lk_call *call, lk_identities_cb done,
                       void *arg);

#ifdef __cplusplus
}
#endif
#endif
