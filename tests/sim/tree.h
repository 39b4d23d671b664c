/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_TREE_H
#define LK_SIM_TREE_H

#include <latchkey/types.h>

/**
 * The nodes of a server, changed by transactions and by nothing else: equal
 * transactions in equal order make equal trees.
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
  unsigned char *data;
  lk_stat stat;
  int32_t counter; /**< of sequence numbers; see the oddities of its end */
  bool container;
  int32_t perms; /**< what everybody may do; 31: all */
} sim_node;

typedef struct sim_tree {
  sim_node *root;
  size_t count;
  int64_t zxid; /**< of the last transaction */
} sim_tree;

/** NULL: there is none. */
const sim_node *sim_tree_find(const sim_tree *t, const char *path);

#endif
