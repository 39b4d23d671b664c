/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_TREE_NODES_H
#define LK_RECIPES_NODES_TREE_NODES_H

#include "base/list.h"
#include "base/mem.h"

#include <latchkey/types.h>

/**
 * @file
 * The nodes of a tree that is being deleted: the state of each node, and a
 * stack of the nodes for which a request has to be sent.
 */

typedef struct lk_tree {
  const lk_mem *mem;
  struct lk_tree_node *stack; /* nodes that need a request, the next on top */
  lk_link nodes;              /* list of all lk_tree_node */
  size_t names_left;          /* the sum of `names_left` of all nodes */
  char *path;                 /* of the node `path_of`; NULL: none yet */
  const struct lk_tree_node *path_of; /* NULL: it is freed, or there was none */
  size_t path_room;                   /* bytes at `path` */
} lk_tree;

/* A node to be deleted. It has no copy of its path: the paths of a chain of
   nodes would need memory for the square of its depth. */
typedef struct lk_tree_node {
  lk_link in_nodes; /* in the list `tree->nodes` */
  lk_tree *tree;
  struct lk_tree_node *parent;        /* NULL: the top of the tree */
  struct lk_tree_node *next_in_stack; /* valid if `stacked` */
  bool stacked;                       /* in `tree->stack` */
  bool request_sent;                  /* a delete or getChildren is under way */
  bool was_deleted;        /* at the server; freed once `child_count` is 0 */
  bool must_list;          /* it has unknown children */
  bool in_doubt;           /* a delete failed and may have been executed */
  bool waits_for_children; /* the next delete waits for `children_unsure` 0 */
  bool counted_by_parent;  /* in `children_unrequested` of the parent */
  bool unsure;             /* in `children_unsure` of the parent */
  size_t children_unrequested; /* children whose delete has not been sent */
  size_t children_unsure; /* children that exist, and may have children that are
                             not known when their delete is executed */
  size_t child_count;     /* nodes in memory whose `parent` is this one */
  unsigned times_listed;  /* number of lists received */
  char *names;           /* of children that have no lk_tree_node yet, each with
                            a NUL; NULL: no names */
  const char *next_name; /* the next child, in `names` */
  size_t names_left;     /* number of names from `next_name` on */
  size_t path_len;
  char name[]; /* of the top: its path */
} lk_tree_node;

/** NULL: no memory. */
lk_tree_node *lk__tree_node_new(lk_tree *t, lk_tree_node *parent,
                                const char *name);
void lk__tree_node_free(lk_tree_node *n);
/** The path of the node, valid until the next call for a node of its tree.
    NULL: no memory. */
const char *lk__tree_node_path(const lk_tree_node *n);
/** Put the node on the stack. No effect while it is there, has a request under
    way, or was deleted. */
void lk__tree_node_push(lk_tree_node *n);
/** Take the top node from the stack, which must not be empty. */
lk_tree_node *lk__tree_node_pop(lk_tree *t);
/** Whether the next request for the node, a list or a delete, can be sent. */
bool lk__tree_node_is_ready(const lk_tree_node *n);
/** A request for the node failed, so its delete must be sent again: at once, or
    when deletes of all its children were sent. If `waits_for_children` is set,
    these must be deletes that find no children, unless others create some. */
void lk__tree_node_require_delete(lk_tree_node *n);
/** The delete of the node was sent. The parent is put on the stack when this
    was the last child it waited for. */
void lk__tree_node_delete_requested(lk_tree_node *n);
/** The node was deleted at the server: free it, once it has no children in
    memory. Then each deleted ancestor without further children is freed, too.
    */
void lk__tree_node_deleted(lk_tree_node *n);
/** Copy the names of the node's children, as getChildren returned them.
    @return 0, LK_ERR_NO_MEMORY. */
int lk__tree_node_take_names(lk_tree_node *n, const lk_bytes *names,
                             size_t count);
/** Make a lk_tree_node of the next name, and put it on the stack. @return 0,
    LK_ERR_NO_MEMORY. */
int lk__tree_node_add_child(lk_tree_node *n);

#endif
