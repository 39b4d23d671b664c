/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_H
#define LK_RECIPES_QUEUE_OWN_NODE_H

/**
 * @file
 * The "own node", which a contender creates to take part in a queue: its path,
 * its identity, its fencing token, and whether it exists. Other files change
 * the struct through the functions of this header.
 */

#include "recipes/names.h"

#include <latchkey/watch.h>

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
  uint64_t token;       /**< the node's czxid; 0: not known */
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
  char *path;      /**< with room for the number that a server appends */
  size_t path_base_len; /**< length of `path` without that number */
  char *data;      /**< for LK_IDENTITY_DATA: the data, which end with the UUID;
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

/** Make a new unique part from 16 random bytes, so that the next create makes a
    node of another name or with other data. */
void lk__own_node_set_unique_part(lk_own_node *own,
                                  const unsigned char random[16]);

/** The create of the node was sent. `seen_zxid` is the largest zxid that was
    seen before. */
void lk__own_node_requested(lk_own_node *own, uint64_t seen_zxid);

/** A reply on `connection` has shown that the node at `path` is the own one.
    `token` is its czxid, or 0 if the reply does not have the czxid. */
void lk__own_node_set_found(lk_own_node *own, uint64_t token,
                            uint64_t connection);

/** The create completed with success and `path`. Returns 0, or LK_ERR_PROTOCOL
    if `path` is not the requested path with a sequence number. */
int lk__own_node_created(lk_own_node *own, const char *path, uint64_t token,
                         uint64_t connection);

/** The watch on the node is confirmed on `connection`. */
static inline void lk__own_node_watched(lk_own_node *own, uint64_t connection)
{
  own->watched_on = connection;
}

/** The node does not exist: its create was not executed, or the node was
    deleted. The token is kept. */
void lk__own_node_set_absent(lk_own_node *own);

/** The create completed with the error `err`. */
void lk__own_node_create_failed(lk_own_node *own, int err);

/** The access list of the node forbids reads. */
static inline void lk__own_node_set_unreadable(lk_own_node *own)
{
  own->unreadable = true;
}

/** The watch on the node has fired or was cancelled. */
static inline void lk__own_node_unwatched(lk_own_node *own)
{
  own->watch = NULL;
  own->watched_on = 0;
}

/** The node does not exist any more: clear its state, also the token. */
void lk__own_node_forget(lk_own_node *own);

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

#endif
