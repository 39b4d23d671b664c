/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TREE_H
#define LK_SIM_MODEL_TREE_H

#include <latchkey/types.h>

#include "sim/model/access.h"
#include "sim/model/paths.h"

/**
 * The nodes of a server, changed by transactions and by nothing else: equal
 * transactions in equal order make equal trees. So do the sessions, which
 * transactions begin and end.
 */
typedef struct sim_node {
  struct sim_node *parent;
  struct sim_node *children; /**< oldest first */
  struct sim_node *last;
  struct sim_node *next;
  struct sim_node *prev;
  const char *path; /**< whole; NUL-terminated */
  const char *name; /**< its last part */
  bool has_data;    /**< null is not empty */
  const unsigned char *data;
  lk_stat stat;
  int32_t counter; /**< of sequence numbers; see the oddities of its end */
  bool container;
  int64_t ttl_ms; /**< 0: it has none */
  int32_t perms;  /**< what everybody may do; 31: all */
  const sim_access *access;
  const sim_path *key;
  struct sim_node *next_owned; /**< another one of its session */
  struct sim_node *prev_owned;
} sim_node;

/** A session that is committed and has not ended. */
typedef struct sim_committed_session {
  int64_t id;
  int32_t timeout_ms; /**< as it began */
  sim_node *owned;    /**< its ephemerals */
} sim_committed_session;

typedef struct sim_tree {
  sim_node *root;
  size_t count;
  int64_t zxid;        /**< of the last transaction */
  sim_committed_session *sessions; /**< oldest first */
  size_t nsessions;
  size_t sessions_cap;
  sim_paths *paths; /**< shared by all trees of an ensemble */
  sim_node **nodes; /**< by the numbers of their paths; NULL: none */
  size_t nodes_cap;
  sim_node *spare;
} sim_tree;

/** NULL: there is none. */
const sim_node *sim_tree_find(const sim_tree *t, const char *path);
/** NULL: it never was, or it has ended. */
sim_committed_session *sim_tree_session(const sim_tree *t, int64_t id);

/* ---- for txn.c and servers ---------------------------------------------- */

/** With what every server has from the start. `members`: see
    sim_ensemble_config; `time_ms`: when it was read. */
void sim_tree_init(sim_tree *t, sim_paths *paths, const char *members,
                   int64_t time_ms);
void sim_tree_free(sim_tree *t);

static inline sim_node *sim_tree_node(const sim_tree *t, const sim_path *p)
{
  return p != NULL && p->number < t->nodes_cap ? t->nodes[p->number] : NULL;
}

/** Hang a new node below its parent; stat and counters are the caller's. */
sim_node *sim_tree_add(sim_tree *t, const sim_path *p);
/** Its memory stays as it is until the next one is added. */
void sim_tree_remove(sim_tree *t, sim_node *n);
/** What a client sees of the counter and the number of children. */
void sim_node_update_cversion(sim_node *n);
void sim_tree_add_ephemeral(sim_tree *t, sim_node *n);
void sim_tree_begin_session(sim_tree *t, int64_t id, int32_t timeout_ms);
void sim_tree_end_session(sim_tree *t, int64_t id);

#endif
