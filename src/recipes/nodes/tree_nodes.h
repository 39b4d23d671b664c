/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_TREE_NODES_H
#define LK_RECIPES_NODES_TREE_NODES_H

#include "base/list.h"
#include "base/mem.h"

#include <latchkey/types.h>

/**
 * @file
 * The nodes of a tree that is being deleted: what is known of each, and which
 * have work to do.
 */

typedef struct lk_tree {
  const lk_mem *mem;
  struct lk_tree_node *stack; /* nodes with work to do, the next one on top */
  lk_link nodes;              /* all */
  size_t names;               /* in memory */
} lk_tree;

/* A node to be deleted. */
typedef struct lk_tree_node {
  lk_link all;
  lk_tree *tree;
  struct lk_tree_node *parent; /* NULL: the top of the tree */
  struct lk_tree_node
      *next_in_stack; /* in the stack of nodes with work to do */
  bool stacked;
  bool request_sent; /* a delete or list is under way */
  bool was_deleted;  /* freed once `children` is 0 */
  bool must_list;    /* it has unknown children */
  bool in_doubt;     /* a request failed: a delete may have been executed */
  bool counted_by_parent; /* in `parent->unrequested` */
  size_t unrequested;     /* children without a delete under way */
  size_t children;        /* tree_nodes whose `parent` is this one */
  unsigned times_listed;  /* number of lists received */
  char *names; /* of children without a lk_tree_node, each with a NUL */
  const char *next_name;
  size_t names_left; /* from `next_name` on */
  char path[];
} lk_tree_node;

/** A node at `path`, or its child `name` if that is not "". NULL: no memory. */
lk_tree_node *lk__tree_node_new(lk_tree *t, lk_tree_node *parent,
                                const char *path, const char *name);
void lk__tree_node_free(lk_tree_node *n);
/** It has work to do. */
void lk__tree_node_push(lk_tree_node *n);
/** The next node with work to do; there is one. */
lk_tree_node *lk__tree_node_pop(lk_tree *t);
/** Another delete is needed. */
void lk__tree_node_reopen(lk_tree_node *n);
/** Its parent waits no longer for this node's delete to be sent. */
void lk__tree_node_delete_requested(lk_tree_node *n);
/** Free the node, and each parent that was kept for this last child. */
void lk__tree_node_deleted(lk_tree_node *n);
/** Keep the names of its children. @return 0, LK_ERR_PROTOCOL,
    LK_ERR_NO_MEMORY. */
int lk__tree_node_take_names(lk_tree_node *n, const lk_bytes *names,
                             size_t count);
/** Make a node of the next name. @return 0, LK_ERR_NO_MEMORY. */
int lk__tree_node_add_child(lk_tree_node *n);

#endif
