/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/tree.h"

#include <stdlib.h>

/* ---- lookup ------------------------------------------------------------- */

const sim_node *sim_tree_find(const sim_tree *t, const char *path)
{
  return sim_tree_node(t, sim_path_find(t->paths, lk_text(path)));
}

sim_committed_session *sim_tree_session(const sim_tree *t, int64_t id)
{
  for (size_t i = t->nsessions; i-- > 0;) {
    if (t->sessions[i].id == id)
      return &t->sessions[i];
  }
  return NULL;
}

/* ---- nodes -------------------------------------------------------------- */

/* Nodes are allocated in the arena of the ensemble, which is freed at the end
 * of the run; removed nodes are used again. */
static sim_node *allocate_node(sim_tree *t)
{
  sim_node *n = t->spare;

  if (n == NULL)
    return lk__arena_take(t->paths->arena, 1, sizeof *n);
  t->spare = n->next;
  memset(n, 0, sizeof *n);
  return n;
}

static void set_node(sim_tree *t, const sim_path *p, sim_node *n)
{
  if (p->number >= t->nodes_cap) {
    size_t cap = t->nodes_cap == 0 ? 256 : t->nodes_cap;

    while (cap <= p->number)
      cap *= 2;
    t->nodes = realloc(t->nodes, cap * sizeof(sim_node *));
    memset(t->nodes + t->nodes_cap, 0,
           (cap - t->nodes_cap) * sizeof(sim_node *));
    t->nodes_cap = cap;
  }
  t->nodes[p->number] = n;
}

/* A server counts the creates of children. cversion is the number of creates
 * and deletes. The deletes are the creates less the children that exist. */
void sim_node_update_cversion(sim_node *n)
{
  n->stat.cversion =
      (int32_t)((uint32_t)n->counter * 2 - (uint32_t)n->stat.num_children);
}

static void append_child(sim_node *parent, sim_node *n)
{
  n->prev = parent->last_child;
  if (parent->last_child == NULL)
    parent->children = n;
  else
    parent->last_child->next = n;
  parent->last_child = n;
}

static void remove_child(sim_node *parent, const sim_node *n)
{
  if (n->prev == NULL)
    parent->children = n->next;
  else
    n->prev->next = n->next;
  if (n->next == NULL)
    parent->last_child = n->prev;
  else
    n->next->prev = n->prev;
}

sim_node *sim_tree_add(sim_tree *t, const sim_path *p)
{
  sim_node *n = allocate_node(t);
  sim_node *parent = sim_tree_node(t, p->parent);

  *n = (sim_node){.parent = parent,
                  .path = p->text,
                  .name = p->name,
                  .perms = LK_PERM_ALL,
                  .access = &sim_access_open,
                  .key = p};
  set_node(t, p, n);
  t->count++;
  if (parent == NULL)
    return n;
  append_child(parent, n);
  parent->stat.num_children++;
  sim_node_update_cversion(parent);
  return n;
}

static void remove_ephemeral(sim_tree *t, sim_node *n)
{
  sim_committed_session *s = sim_tree_session(t, n->stat.ephemeral_owner);

  if (n->next_owned != NULL)
    n->next_owned->prev_owned = n->prev_owned;
  if (n->prev_owned != NULL)
    n->prev_owned->next_owned = n->next_owned;
  else if (s != NULL)
    s->owned = n->next_owned;
}

void sim_tree_remove(sim_tree *t, sim_node *n)
{
  sim_node *parent = n->parent;

  if (n->stat.ephemeral_owner != 0)
    remove_ephemeral(t, n);
  remove_child(parent, n);
  parent->stat.num_children--;
  sim_node_update_cversion(parent);
  t->nodes[n->key->number] = NULL;
  t->count--;
  n->next = t->spare;
  t->spare = n;
}

void sim_tree_add_ephemeral(sim_tree *t, sim_node *n)
{
  sim_committed_session *s = sim_tree_session(t, n->stat.ephemeral_owner);

  if (s == NULL)
    return;
  n->next_owned = s->owned;
  if (s->owned != NULL)
    s->owned->prev_owned = n;
  s->owned = n;
}

/* ---- sessions ----------------------------------------------------------- */

void sim_tree_begin_session(sim_tree *t, int64_t id, int32_t timeout_ms)
{
  if (t->nsessions == t->sessions_cap) {
    t->sessions_cap = t->sessions_cap == 0 ? 16 : t->sessions_cap * 2;
    t->sessions =
        realloc(t->sessions, t->sessions_cap * sizeof(sim_committed_session));
  }
  t->sessions[t->nsessions++] = (sim_committed_session){id, timeout_ms, NULL};
}

void sim_tree_end_session(sim_tree *t, int64_t id)
{
  sim_committed_session *s = sim_tree_session(t, id);

  if (s == NULL)
    return;
  size_t after = t->nsessions - (size_t)(s - t->sessions) - 1;

  memmove(s, s + 1, after * sizeof *s);
  t->nsessions--;
}

/* ---- setup and end ------------------------------------------------------ */

/* Adds a node that each server makes itself. It is not counted as a create. */
static sim_node *add_system_node(sim_tree *t, const char *path)
{
  sim_node *n = sim_tree_add(t, sim_path_get(t->paths, lk_text(path)));

  n->has_data = true;
  n->data = (const unsigned char *)"";
  sim_node_update_cversion(n);
  return n;
}

/* No transaction makes this node, so its zxids are 0. With `members`, its
 * version is -1. */
static void add_config_node(sim_tree *t, const char *members, int64_t time_ms)
{
  sim_node *n = add_system_node(t, "/zookeeper/config");

  n->access = sim_access_for_world(LK_PERM_READ, t->paths->arena);
  n->perms = LK_PERM_READ;
  n->stat.aversion = -1;
  if (members == NULL)
    return;
  n->data = (const unsigned char *)members;
  n->stat.data_length = (int32_t)strlen(members);
  n->stat.version = -1;
  n->stat.mtime = time_ms;
}

void sim_tree_init(sim_tree *t, sim_paths *paths, const char *members,
                   int64_t time_ms)
{
  *t = (sim_tree){.paths = paths};
  t->root = add_system_node(t, "/");
  add_system_node(t, "/zookeeper");
  add_system_node(t, "/zookeeper/quota");
  add_config_node(t, members, time_ms);
}

void sim_tree_free(sim_tree *t)
{
  free(t->nodes);
  free(t->sessions);
  *t = (sim_tree){.paths = t->paths};
}
