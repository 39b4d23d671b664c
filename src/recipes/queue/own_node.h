/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_H
#define LK_RECIPES_QUEUE_OWN_NODE_H

/**
 * @file
 * The "own node", which a contender creates to take part in a queue: its path,
 * its identity, its fencing token, and whether it exists. Other files change
 * the struct through the functions of this header.
 */

#include <latchkey/watch.h>

#include "recipes/names.h"
#include "recipes/queue/contender_states.h"

typedef struct lk_contender lk_contender;

/** Whether the own node exists. */
typedef enum lk_own_state {
  LK_OWN_NONE,      /**< it does not exist */
  LK_OWN_REQUESTED, /**< its create was sent, and no reply has come */
  LK_OWN_IN_DOUBT,  /**< the reply to its create was lost */
  LK_OWN_CREATED    /**< by the last reply or event it exists */
} lk_own_state;

typedef struct lk_own_node {
  lk_own_state state;
  lk_node_identity identity;
  uint64_t token; /**< the node's czxid; 0: not known */
  /** The largest zxid that was seen when the create was sent: the node's czxid
      is larger. */
  uint64_t requested_after_zxid;
  uint64_t verified_on; /**< the number of the connection on which the node at
                             `path` was last known to be the own one */
  lk_watch *watch;      /**< requested or confirmed; NULL: none */
  uint64_t watched_on;  /**< the number of the connection on which `watch` was
                             confirmed; 0: it is not confirmed */
  bool unreadable; /**< the access list forbids reads, so no watch is set */
  unsigned times_missing; /**< how often the node was found missing */
  char unique_part[LK_UNIQUE_PART_MAX_LEN + 1]; /**< see lk_node_identity */
  char *dir;                                    /**< "" for the root */
  char *path;           /**< with room for the number that a server appends */
  size_t path_base_len; /**< length of `path` without that number */
  char *data; /**< for LK_IDENTITY_DATA: the data, which end with the UUID;
                 else NULL */
  size_t data_len;
} lk_own_node;

/** The path of the directory, for requests. */
static inline const char *lk__own_node_directory(const lk_own_node *own)
{
  return *own->dir == '\0' ? "/" : own->dir;
}

/** The name at the end of `path`. Before the node is created, the number that
    the server appends is missing. */
static inline char *lk__own_node_name(const lk_own_node *own)
{
  return own->path + strlen(own->dir) + 1;
}

/** The name of the own node without the number which the server appends. */
lk_bytes lk__own_node_base(const lk_own_node *own);

/** The memory that lk__own_node_init() needs, in bytes. */
size_t lk__own_node_size(lk_node_identity identity, const char *dir,
                         const char *name, lk_bytes data);

/** Set the paths and the data, in `memory` of lk__own_node_size() bytes. `name`
    is what follows the unique part in the name of the node. */
void lk__own_node_init(lk_own_node *own, char *memory,
                       lk_node_identity identity, const char *dir,
                       const char *name, lk_bytes data);

/** A reply on `connection` has shown that the node at `path` is the own one.
    `token` is its czxid, or 0 if the reply does not have the czxid. */
void lk__own_node_set_found(lk_own_node *own, uint64_t token,
                            uint64_t connection);

/** The watch on the node is confirmed on `connection`. */
static inline void lk__own_node_watched(lk_own_node *own, uint64_t connection)
{
  own->watched_on = connection;
}

/** The node does not exist: its create was not executed, or the node was
    deleted. The token is kept. */
void lk__own_node_set_missing(lk_own_node *own);

/** Note that the node exists, with this `name`. Returns false if `name` is not
    the requested name with a sequence number. */
bool lk__own_node_accept_name(lk_own_node *own, lk_bytes name);

/** Write `number` to the end of `path`, as the sequence number. */
void lk__own_node_set_number(lk_own_node *own, int64_t number);

/** Find the name of the own node in a list. `at` of the result is NULL if the
    node is not listed. */
lk_bytes lk__own_node_find(const lk_own_node *own, const lk_bytes *names,
                           size_t count);

/** Whether another client may have replaced the node at `path`: the name is not
    unique, and the node has not been verified on `connection`. */
bool lk__own_node_needs_verification(const lk_own_node *own,
                                     uint64_t connection);

/* What follows when the own node does not exist any more, so that the contender
   has lost its place in the queue. */

/** The own node was found missing, as `err` says: start anew at the end of the
    queue, or fail with `err` if this happens too often. `ct` may be freed. */
void lk__contender_own_missing(lk_contender *ct, int err);
/** Clear what is known of the own node, which does not exist any more. Replies
    to requests under way are ignored, since the requests were for that node. */
void lk__contender_forget_own(lk_contender *ct);
/** Prepare the create of the next own node: draw its unique part, and watch its
    direct predecessor again if the directory was watched instead. */
void lk__contender_prepare_create(lk_contender *ct);

/* Reading and watching the own node. */

/** Read the node at the own path, with a watch, and pass the reply to `done`.
    0, or why the request was refused. */
int lk__contender_read_own(lk_contender *ct, lk_get_cb done);
/** Read the own node, with a watch. 0, or why the request was refused. */
int lk__contender_watch_own(lk_contender *ct);
/** The same, unless the node is watched, that is requested, or the node cannot
    be read. */
int lk__contender_ensure_own_watch(lk_contender *ct);
/** The access list of the own node forbids reads: note and report that the node
    is not watched. `ct` may be freed. */
void lk__contender_own_unreadable(lk_contender *ct);
/** If `data` of the own node are the message of Curator's revocation, note it.
    A holder is notified at once, a waiter after its grant. `ct` may be freed.
 */
void lk__contender_note_revocation(lk_contender *ct, const lk_bytes *data);

/* Checks of the own node (the operation `check` of a multi). */

/** The result of a check of the own node. */
typedef enum lk_check_result {
  LK_CHECK_UNKNOWN, /**< the check was not executed, as far as is known */
  LK_CHECK_EXISTS,
  LK_CHECK_MISSING
} lk_check_result;

/** What the error of a check, a read or a write says about the node. A server
    looks for the node before it checks the permission, so LK_ERR_NO_AUTH means
    that the node exists. */
lk_check_result lk__check_result_of(int err);
/** What that error says about the own node of `ct`. If its name is not unique,
    the existing node may be another client's: then LK_CHECK_UNKNOWN. */
lk_check_result lk__contender_check_result(const lk_contender *ct, int err);
/** Send a check of the own node, which proves that it exists and renews the
    lease. 0, or why it was refused. */
int lk__contender_check_own(lk_contender *ct, lk_multi_cb done);

/* Creating the own node, and the directories above it. */

/** Say before lk__contender_begin() that the caller has sent the create of the
    own node, in a transaction with the creates of other contenders. The caller
    reports the result by lk__contender_own_created(). All contenders of the
    transaction must be marked before the first one begins. */
void lk__contender_mark_created_jointly(lk_contender *ct);
/** The create of the own node completed; `zxid` is the node's czxid.
    `ct` may be freed. */
void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid);
/** Request the creates of the directories. 0, or why one was refused. */
int lk__contender_create_parents(lk_contender *ct);
/** The create of the own node has shown that the directory does not exist:
    create the directory, or fail. `ct` may be freed. */
void lk__contender_parent_missing(lk_contender *ct);
/** Begin CREATING and CREATING_PARENTS, in any machine. */
int lk__contender_enter_creating(lk_contender *ct);
int lk__contender_enter_creating_parents(lk_contender *ct);

extern const lk_contender_rules lk__rules_creating;
extern const lk_contender_rules lk__rules_creating_parents;

/* The downgrade of a writer: its owner acquires the read side as well. */

/** Make the reader `ct` a downgrade of `writer`, which has the same owner and
    holds. Called before lk__contender_begin(ct). The node of `ct` gets the
    number of the writer's node, and `ct` is granted when it is created. */
void lk__downgrade_set_writer(lk_contender *ct, lk_contender *writer);

#endif
