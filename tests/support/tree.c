/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>

static void *must(void *p)
{
  if (p == NULL)
    abort();
  return p;
}

static tree_node *new_node(const char *path, size_t room)
{
  tree_node *n = must(calloc(1, sizeof *n));

  n->path = must(calloc(1, strlen(path) + room + 1));
  memcpy(n->path, path, strlen(path));
  return n;
}

void tree_init(tree *t)
{
  t->zxid = 0x100000000;
  t->nodes = new_node("/", 0);
}

static void free_node(tree_node *n)
{
  free(n->path);
  free(n->data);
  free(n);
}

void tree_done(tree *t)
{
  while (t->nodes != NULL) {
    tree_node *n = t->nodes;

    t->nodes = n->next;
    free_node(n);
  }
}

tree_node *tree_find(const tree *t, const char *path)
{
  tree_node *n = t->nodes;

  while (n != NULL && strcmp(n->path, path) != 0)
    n = n->next;
  return n;
}

tree_node *tree_parent(const tree *t, const char *path)
{
  char parent[512];
  size_t len = (size_t)(strrchr(path, '/') - path);

  if (len >= sizeof parent)
    abort();
  memcpy(parent, path, len);
  parent[len] = '\0';
  return tree_find(t, len == 0 ? "/" : parent);
}

const char *tree_child(const tree_node *node, const char *path)
{
  size_t len = strcmp(path, "/") == 0 ? 0 : strlen(path);
  const char *name = node->path + len + 1;

  if (strlen(node->path) <= len + 1 || strncmp(node->path, path, len) != 0 ||
      node->path[len] != '/' || strchr(name, '/') != NULL)
    return NULL;
  return name;
}

int tree_may_create(const tree *t, const char *path, int32_t flags)
{
  const tree_node *parent = tree_parent(t, path);

  if (parent == NULL)
    return LK_ERR_NO_NODE;
  if (parent->denied & LK_PERM_CREATE)
    return LK_ERR_NO_AUTH;
  if (!(flags & 2) && tree_find(t, path) != NULL)
    return LK_ERR_NODE_EXISTS;
  if (parent->stat.ephemeral_owner != 0)
    return LK_ERR_NO_CHILDREN_FOR_EPHEMERALS;
  return 0;
}

static void set_data(tree_node *n, lk_bytes data)
{
  free(n->data);
  n->data = must(calloc(1, data.len + 1));
  if (data.len > 0)
    memcpy(n->data, data.at, data.len);
  n->stat.data_length = (int32_t)data.len;
}

tree_node *tree_create(tree *t, const char *path, lk_bytes data, int32_t flags,
                       bool container, int64_t session)
{
  tree_node *parent = tree_parent(t, path);
  tree_node *n = new_node(path, 12);
  tree_node **end = &t->nodes;

  if (flags & 2)
    snprintf(n->path + strlen(path), 12, "%010d", (int)parent->counter);
  if (tree_find(t, n->path) != NULL)
    abort();
  parent->counter += parent->counter < INT32_MAX;
  parent->stat.cversion++;
  parent->stat.num_children++;
  parent->stat.pzxid = t->zxid;
  n->stat.czxid = t->zxid;
  n->stat.mzxid = t->zxid;
  n->stat.pzxid = t->zxid;
  n->stat.ephemeral_owner = (flags & 1) ? session : 0;
  n->container = container;
  set_data(n, data);
  while (*end != NULL)
    end = &(*end)->next;
  *end = n;
  return n;
}

int tree_may_delete(const tree *t, const char *path, int32_t version)
{
  const tree_node *n = tree_find(t, path);
  const tree_node *parent = tree_parent(t, path);

  if (parent != NULL && (parent->denied & LK_PERM_DELETE))
    return LK_ERR_NO_AUTH;
  if (n == NULL)
    return LK_ERR_NO_NODE;
  if (version != -1 && version != n->stat.version)
    return LK_ERR_BAD_VERSION;
  return n->stat.num_children > 0 ? LK_ERR_NOT_EMPTY : 0;
}

void tree_delete(tree *t, const char *path)
{
  tree_node *parent = tree_parent(t, path);

  for (tree_node **p = &t->nodes; *p != NULL; p = &(*p)->next) {
    tree_node *n = *p;

    if (strcmp(n->path, path) != 0)
      continue;
    *p = n->next;
    free_node(n);
    parent->stat.num_children--;
    parent->stat.cversion++;
    parent->stat.pzxid = t->zxid;
    return;
  }
  abort();
}

int tree_may_set(const tree *t, const char *path, int32_t version)
{
  const tree_node *n = tree_find(t, path);

  if (n == NULL)
    return LK_ERR_NO_NODE;
  if (n->denied & LK_PERM_WRITE)
    return LK_ERR_NO_AUTH;
  return version != -1 && version != n->stat.version ? LK_ERR_BAD_VERSION : 0;
}

void tree_set(tree *t, const char *path, lk_bytes data)
{
  tree_node *n = tree_find(t, path);

  if (n == NULL)
    abort();
  set_data(n, data);
  n->stat.version++;
  n->stat.mzxid = t->zxid;
}

int tree_may_read(const tree *t, const char *path)
{
  const tree_node *n = tree_find(t, path);

  if (n == NULL)
    return LK_ERR_NO_NODE;
  return n->denied & LK_PERM_READ ? LK_ERR_NO_AUTH : 0;
}
