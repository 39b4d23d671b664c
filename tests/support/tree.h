/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_TREE_H
#define LK_SUPPORT_TREE_H

#include <latchkey/types.h>

/** A server's nodes. Small: everything is searched for. */
typedef struct tree_node {
  struct tree_node *next;
  char *path;
  unsigned char *data;
  lk_stat stat;
  int32_t counter; /**< of sequence numbers; creations of any kind */
  bool container;
  int32_t denied; /**< permissions nobody has */
  char acl[64];   /**< as it was made with: "31 world anyone, ..." */
} tree_node;

typedef struct tree {
  tree_node *nodes; /**< oldest first; the root is always there */
  int64_t zxid;     /**< of the last transaction */
} tree;

void tree_init(tree *t);
void tree_done(tree *t);

tree_node *tree_find(const tree *t, const char *path);
/** The parent of a path; NULL: there is none. */
tree_node *tree_parent(const tree *t, const char *path);

/** As the operations of their names, in the transaction `zxid`; 0 or the
    server's error. `made` gets the node. */
int tree_may_create(const tree *t, const char *path, int32_t flags);
tree_node *tree_create(tree *t, const char *path, lk_bytes data, int32_t flags,
                       bool container, int64_t session);
int tree_may_delete(const tree *t, const char *path, int32_t version);
void tree_delete(tree *t, const char *path);
int tree_may_set(const tree *t, const char *path, int32_t version);
void tree_set(tree *t, const char *path, lk_bytes data);
int tree_may_read(const tree *t, const char *path);

/** Whether `node` is a child of `path`, and its name. */
const char *tree_child(const tree_node *node, const char *path);

#endif
