/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_MEMBER_H
#define LK_MEMBER_H

/**
 * @file
 * Group membership: a member is present as long as its session lives. It has an
 * ephemeral node in the directory of the group, which it creates again after an
 * expiry of the session or a deletion by another client. The node and its data
 * are those of Curator's GroupMember and PersistentNode and of kazoo's Party,
 * so members of these libraries and of this one see each other.
 *
 * <latchkey/roster.h> reads the members of a group.
 *
 * A member that has died is in the group until its session has expired: for at
 * most one session timeout and one tick of the servers, counted while they have
 * a quorum and keep their leader.
 *
 * Cost: a join is one write and, after its reply, one read, which watches the
 * node. After a lost connection, a write is preceded by a transaction and a
 * read. A missing directory costs two round trips more. A member sends nothing
 * while nothing changes.
 *
 * Threads and callbacks: as for the client. Every callback may free the member.
 */

#include <latchkey/nodes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_membership lk_membership;

/** The events for on_event. JOINED and LEFT alternate. A program ignores an
    event of a type that it does not know. */
typedef enum lk_membership_event_type {
  /** The node exists, and belongs to this session. `zxid`: its czxid. */
  LK_MEMBERSHIP_EVENT_JOINED = 0,
  /** The node does not exist any more, or belongs to another session. `err`: 0
      after lk_membership_leave(); LK_ERR_NO_NODE: another client deleted it;
      LK_ERR_SESSION_EXPIRED; LK_ERR_CLOSED, LK_ERR_AUTH_FAILED. Unless it has
      left by itself or the client has ended, the member joins again. */
  LK_MEMBERSHIP_EVENT_LEFT = 1,
  /** A node of this name belongs to another session, perhaps to an earlier one
      of this program that has not expired yet. The member joins when that node
      is deleted. */
  LK_MEMBERSHIP_EVENT_NAME_TAKEN = 2,
  /** A request was refused with `err`, such as LK_ERR_NO_AUTH. It is sent again
      in `retry_ms`. */
  LK_MEMBERSHIP_EVENT_RETRYING = 3,
  /** The client has ended with `err`: LK_ERR_CLOSED, LK_ERR_AUTH_FAILED or
      LK_ERR_SESSION_EXPIRED (with lk_client_config.one_session, or while the
      client closes). This is the last event; the member cannot join again. A
      member that has left does not get it. */
  LK_MEMBERSHIP_EVENT_ENDED = 4
} lk_membership_event_type;

/** "joined", "left", …: for logs. */
LK_API const char *lk_membership_event_text(lk_membership_event_type type);

/** An event. Members that its type does not name are 0. */
typedef struct lk_membership_event {
  lk_membership_event_type type;
  int err;          /**< LEFT, RETRYING, ENDED */
  int64_t zxid;     /**< JOINED */
  int64_t retry_ms; /**< RETRYING */
} lk_membership_event;

/** Options of a member. Set `size`; 0 selects the default of every other
    option. All is copied. */
typedef struct lk_membership_config {
  size_t size;        /**< sizeof(lk_membership_config) */
  lk_bytes data;      /**< data of the node; default empty */
  const lk_acls *acl; /**< of the node; NULL: open. The member needs READ on it
                           to find out whether a node is its own, WRITE for
                           lk_membership_set_data(), and CREATE and DELETE on
                           the directory */
  const lk_acls *parent_acl; /**< of created directories; NULL: `acl` */
  bool persistent_parents;   /**< create directories as persistent nodes, not as
                                  containers. For groups that are shared with
                                  kazoo */
  void (*on_event)(lk_membership *m, const lk_membership_event *event,
                   void *arg);
  void *arg;
} lk_membership_config;

/**
 * Make a member of the group at `path` (absolute, not "/"; copied), whose node
 * is `path`/`name`. `name` NULL: 32 random hex digits and "__party__", as in
 * kazoo's Party, which shows only members with "__party__" in their name.
 * Curator's GroupMember has a name that the caller chooses. A client must not
 * have two members with the same path and name: each would take the node for
 * its own. No request is sent. `config` NULL selects the defaults. Free the
 * member before `client`, or after it.
 *
 * @return 0; LK_ERR_BAD_PATH: also if `name` is empty or has a '/';
 *         LK_ERR_BAD_ARGUMENT; LK_ERR_NO_MEMORY. After an error `*out` is NULL.
 */
LK_API int lk_membership_new(lk_membership **out, lk_client *client,
                             const char *path, const char *name,
                             const lk_membership_config *config);

/** Leave without an event, and free the member. The node is deleted in the
    background. NULL is allowed. */
LK_API void lk_membership_free(lk_membership *m);

/**
 * Join. Nothing happens if the member has joined, or is joining. Without a
 * connection the node is created on the next one.
 *
 * @return 0; or an error with which the create is refused: LK_ERR_TOO_BIG (the
 *         data), LK_ERR_NO_MEMORY and others; LK_ERR_CLOSED,
 *         LK_ERR_AUTH_FAILED, LK_ERR_SESSION_EXPIRED: the client has ended.
 *         The member has not joined, and does not try again.
 */
LK_API int lk_membership_join(lk_membership *m);

/** Leave. If the member has joined, LEFT with `err` 0 is reported before this
    returns, and the node is deleted without waiting for the reply. A create
    under way is undone. lk_membership_join() may follow at once. */
LK_API void lk_membership_leave(lk_membership *m);

/**
 * Replace the data, which are copied. If the member has joined, they are
 * written at once, and again until that has succeeded; otherwise when it joins.
 * Of several calls, only the last data are sure to be written. Data that
 * another client writes to the node are replaced by these after 0.1 s; if that
 * goes on, after longer pauses, of up to 15 s, which delay a call of this, too.
 *
 * @return 0; LK_ERR_NO_MEMORY: the data are as before.
 */
LK_API int lk_membership_set_data(lk_membership *m, lk_bytes data);

/** Whether the member has joined, as far as the client knows. During a lost
    connection it is true until the session has expired. */
LK_API bool lk_membership_has_joined(const lk_membership *m);

/** The path of the node. Its last component is the name. */
LK_API const char *lk_membership_path(const lk_membership *m);

#ifdef __cplusplus
}
#endif
#endif
