/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/nodes/tree_nodes.h"

#include "base/mem.h"

#include <latchkey/error.h>

lk_tree_node *lk__tree_node_new(lk_tree *t, lk_tree_node *parent,
                                const char *name)
{
  size_t name_len = strlen(name);
  lk_tree_node *n = lk__mem_new(t->mem, sizeof *n + name_len + 1);

  if (n == NULL)
    return NULL;
  memcpy(n->name, name, name_len); /* the memory is zeroed, so a NUL follows */
  n->path_len = name_len;
  n->tree = t;
  n->parent = parent;
  if (parent != NULL) {
    n->path_len += parent->path_len + strlen("/");
    parent->child_count++;
  }
  lk__list_add(&t->nodes, &n->in_nodes);
  return n;
}

/* Makes room for a path of `len` bytes. Returns false if there is no memory. */
static bool tree_reserve_path(lk_tree *t, size_t len)
{
  if (len < t->path_room)
    return true;
  char *path = lk__mem_resize(t->mem, t->path, 2 * len + 1);

  if (path == NULL)
    return false;
  t->path = path;
  t->path_room = 2 * len + 1;
  return true;
}

const char *lk__tree_node_path(const lk_tree_node *n)
{
  lk_tree *t = n->tree;
  const lk_tree_node *last = t->path_of;
  const lk_tree_node *parent_of_last = last == NULL ? NULL : last->parent;
  size_t at = n->path_len; /* the path is written from its end on */

  if (!tree_reserve_path(t, at))
    return NULL;
  t->path_of = n;
  t->path[at] = '\0';
  /* The path of `last` begins with those of its ancestors. */
  for (; n != NULL && n != last && n != parent_of_last; n = n->parent) {
    size_t name_len = strlen(n->name);

    at -= name_len;
    memcpy(t->path + at, n->name, name_len);
    if (n->parent != NULL)
      t->path[--at] = '/';
  }
  return t->path;
}

static void tree_node_drop_names(lk_tree_node *n)
{
  n->tree->names_left -= n->names_left;
  n->names_left = 0;
  lk__mem_free(n->tree->mem, n->names);
  n->names = NULL;
}

void lk__tree_node_free(lk_tree_node *n)
{
  tree_node_drop_names(n);
  if (n->tree->path_of == n)
    n->tree->path_of = NULL;
  lk__list_remove(&n->in_nodes);
  lk__mem_free(n->tree->mem, n);
}

void lk__tree_node_push(lk_tree_node *n)
{
  if (n->stacked || n->request_sent || n->was_deleted)
    return;
  n->stacked = true;
  n->next_in_stack = n->tree->stack;
  n->tree->stack = n;
}

lk_tree_node *lk__tree_node_pop(lk_tree *t)
{
  lk_tree_node *n = t->stack;

  t->stack = n->next_in_stack;
  n->stacked = false;
  return n;
}

bool lk__tree_node_is_ready(const lk_tree_node *n)
{
  return n->must_list || (n->children_unrequested == 0 &&
                          (!n->waits_for_children || n->children_unsure == 0));
}

static void tree_node_push_if_ready(lk_tree_node *n)
{
  if (lk__tree_node_is_ready(n))
    lk__tree_node_push(n);
}

static void tree_node_set_unsure(lk_tree_node *n, bool unsure)
{
  if (n->parent == NULL || n->unsure == unsure)
    return;
  n->unsure = unsure;
  if (unsure)
    n->parent->children_unsure++;
  else
    n->parent->children_unsure--;
}

void lk__tree_node_require_delete(lk_tree_node *n)
{
  tree_node_set_unsure(n, true);
  if (n->parent != NULL && !n->counted_by_parent) {
    n->counted_by_parent = true;
    n->parent->children_unrequested++;
  }
  tree_node_push_if_ready(n);
}

void lk__tree_node_delete_requested(lk_tree_node *n)
{
  bool finds_no_children = n->times_listed > 0 && n->children_unsure == 0;

  if (n->parent == NULL)
    return;
  if (finds_no_children || n->was_deleted)
    tree_node_set_unsure(n, false);
  if (n->counted_by_parent)
    n->parent->children_unrequested--;
  else if (!n->parent->waits_for_children)
    return;
  n->counted_by_parent = false;
  tree_node_push_if_ready(n->parent);
}

void lk__tree_node_deleted(lk_tree_node *n)
{
  n->was_deleted = true;
  lk__tree_node_delete_requested(n); /* the parent need not wait for a delete */
  while (n != NULL && n->was_deleted && n->child_count == 0) {
    lk_tree_node *parent = n->parent;

    if (parent != NULL)
      parent->child_count--;
    lk__tree_node_free(n);
    n = parent;
  }
}

int lk__tree_node_add_child(lk_tree_node *n)
{
  lk_tree_node *child = lk__tree_node_new(n->tree, n, n->next_name);

  if (child == NULL)
    return LK_ERR_NO_MEMORY;
  n->next_name += strlen(n->next_name) + 1;
  n->names_left--;
  n->tree->names_left--;
  if (n->names_left == 0)
    tree_node_drop_names(n);
  n->children_unrequested++;
  child->counted_by_parent = true;
  tree_node_set_unsure(child, true);
  lk__tree_node_push(child);
  return 0;
}

int lk__tree_node_take_names(lk_tree_node *n, const lk_bytes *names,
                             size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += names[i].len + 1;
  n->must_list = false;
  n->times_listed++;
  if (count == 0)
    return 0;
  n->names = lk__mem_new(n->tree->mem, size);
  if (n->names == NULL)
    return LK_ERR_NO_MEMORY;
  char *at = n->names;

  for (size_t i = 0; i < count; i++) {
    memcpy(at, names[i].at, names[i].len);
    at += names[i].len + 1; /* the memory is zeroed, so a NUL follows */
  }
  n->next_name = n->names;
  n->names_left = count;
  n->tree->names_left += count;
  return 0;
}
