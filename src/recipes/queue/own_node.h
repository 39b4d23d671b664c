/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_OWN_NODE_H
#define LK_RECIPES_QUEUE_OWN_NODE_H

/**
 * @file
 * The node that a contender creates to take part, the "own node": its path,
 * its identity, its fencing token, and what is known of its existence. Other
 * files change all of that through these functions.
 */

#include "recipes/queue/names.h"

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
  uint64_t token;       /**< its czxid; 0: not known */
  uint64_t before_zxid; /**< the largest zxid that was seen when its create was
                             sent: its czxid is larger */
  uint64_t verified_on; /**< the connection on which the node at `path` was last
                             known to be the own one */
  lk_watch *watch;      /**< requested or confirmed; NULL: none */
  uint64_t watched_on;  /**< the connection on which `watch` was confirmed */
  bool unreadable;      /**< its access list forbids reads: it is not watched */
  unsigned times_missing;              /**< how often others deleted it */
  char unique_part[LK_PREFIX_LEN + 1]; /**< see lk_node_identity */
  char *dir;                           /**< "" for the root */
  char *path;      /**< with room for the number that a server appends */
  size_t base_len; /**< of `path` without that number */
  char *data;      /**< what the node holds where a UUID ends it; or NULL */
  size_t data_len;
} lk_own_node;

/** The name in `path`, as far as it is known before the node is created. */
static inline char *lk__own_node_name(const lk_own_node *own)
{
  return own->path + strlen(own->dir) + 1;
}

/** That name without the number which the server appends. */
lk_bytes lk__own_node_base(const lk_own_node *own);

/** The memory that lk__own_node_init() needs, in bytes. */
size_t lk__own_node_size(lk_node_identity identity, const char *dir,
                         const char *name, lk_bytes data);

/** Set paths and data, in `memory` of lk__own_node_size() bytes. `name`: what
    follows the unique part. */
void lk__own_node_init(lk_own_node *own, char *memory,
                       lk_node_identity identity, const char *dir,
                       const char *name, lk_bytes data);

/** Draw a new unique part from 16 random bytes: the next create makes another
    node. */
void lk__own_node_set_unique_part(lk_own_node *own,
                                  const unsigned char random[16]);

/** Its create was sent; `seen_zxid` is the largest zxid seen before. */
void lk__own_node_requested(lk_own_node *own, uint64_t seen_zxid);

/** The node at `path` is the own one, as a reply on `connection` says; `token`
    is its czxid, or 0 where the reply does not tell. */
void lk__own_node_found(lk_own_node *own, uint64_t token, uint64_t connection);

/** The create completed with success and `path`. 0, or LK_ERR_PROTOCOL: that is
    not what a server makes of the own path. */
int lk__own_node_created(lk_own_node *own, const char *path, uint64_t token,
                         uint64_t connection);

/** The watch on it is confirmed on `connection`. */
static inline void lk__own_node_watched(lk_own_node *own, uint64_t connection)
{
  own->watched_on = connection;
}

/** The node does not exist: its create was not executed, or it was deleted. */
void lk__own_node_set_absent(lk_own_node *own);

/** The create completed with `err`. */
void lk__own_node_create_failed(lk_own_node *own, int err);

/** The access list forbids to read it. */
static inline void lk__own_node_set_unreadable(lk_own_node *own)
{
  own->unreadable = true;
}

/** Its watch has fired or was cancelled. */
static inline void lk__own_node_unwatched(lk_own_node *own)
{
  own->watch = NULL;
  own->watched_on = 0;
}

/** The node does not exist (any more), and has no token. */
void lk__own_node_forget(lk_own_node *own);

/** Take the name that a server made of the base. false: it is not of it. */
bool lk__own_node_set_name(lk_own_node *own, lk_bytes name);

/** Point `path` at the node with the sequence number `number`. */
void lk__own_node_set_number(lk_own_node *own, int64_t number);

/** The own name among those of a list; `at` NULL: none. */
lk_bytes lk__own_node_find(const lk_own_node *own, const lk_bytes *names,
                           size_t count);

/** Whether the node at `path` can be another's by now: its name is not unique,
    and it has not been verified on `connection`. */
bool lk__own_node_is_unverified(const lk_own_node *own, uint64_t connection);

#endif
