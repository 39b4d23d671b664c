/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TREE_H
#define LK_SIM_MODEL_TREE_H

#include <latchkey/types.h>

#include "sim/model/access.h"
#include "sim/model/paths.h"

/**
 * The tree of a server. Only transactions change it, so servers that apply the
 * same transactions have equal trees. The tree also has the sessions that these
 * transactions created.
 */
typedef struct sim_node {
  struct sim_node *parent;
  struct sim_node *children; /**< oldest first */
  struct sim_node *last_child;
  struct sim_node *next; /**< next younger child of the parent */
  struct sim_node *prev;
  const char *path; /**< the whole path; NUL-terminated */
  const char *name; /**< last component of the path */
  /** false: the data are null, which is not the same as empty */
  bool has_data;
  const unsigned char *data;
  lk_stat stat;
  /** counter of sequence numbers; see apply_create() for its overflow */
  int32_t counter;
  bool container;
  int64_t ttl_ms; /**< 0: none */
  int32_t perms;  /**< permissions of world:anyone */
  const sim_access *access;
  const sim_path *key; /**< the same path, with its number */
  struct sim_node *next_owned; /**< next ephemeral node of the same session */
  struct sim_node *prev_owned;
} sim_node;

/** A session that is committed and has not ended. */
typedef struct sim_committed_session {
  int64_t id;
  int32_t timeout_ms; /**< granted when it was created */
  sim_node *owned;    /**< first of its ephemeral nodes */
} sim_committed_session;

typedef struct sim_tree {
  sim_node *root;
  size_t count;
  int64_t zxid;                    /**< of the last transaction */
  sim_committed_session *sessions; /**< oldest first */
  size_t nsessions;
  size_t sessions_cap;
  sim_paths *paths; /**< shared by all trees of an ensemble */
  /** indexed by sim_path.number; NULL: there is no such node */
  sim_node **nodes;
  size_t nodes_cap;
  sim_node *spare; /**< removed nodes, to be used again */
} sim_tree;

/** The node at a path; NULL: there is none. */
const sim_node *sim_tree_find(const sim_tree *t, const char *path);
/** A session; NULL: it never existed, or has ended. */
sim_committed_session *sim_tree_session(const sim_tree *t, int64_t id);

/* ---- for txn.c and servers ---------------------------------------------- */

/** Make the nodes that every server has. `members`: see sim_ensemble_config;
    `time_ms`: the mtime of /zookeeper/config. */
void sim_tree_init(sim_tree *t, sim_paths *paths, const char *members,
                   int64_t time_ms);
void sim_tree_free(sim_tree *t);

static inline sim_node *sim_tree_node(const sim_tree *t, const sim_path *p)
{
  return p != NULL && p->number < t->nodes_cap ? t->nodes[p->number] : NULL;
}

/** Add a node below its parent. The caller sets stat and counter. */
sim_node *sim_tree_add(sim_tree *t, const sim_path *p);
/** Remove a node. Its memory stays valid until the next sim_tree_add(). */
void sim_tree_remove(sim_tree *t, sim_node *n);
/** Set cversion from the counter and the number of children. */
void sim_node_update_cversion(sim_node *n);
void sim_tree_add_ephemeral(sim_tree *t, sim_node *n);
void sim_tree_begin_session(sim_tree *t, int64_t id, int32_t timeout_ms);
void sim_tree_end_session(sim_tree *t, int64_t id);

#endif
