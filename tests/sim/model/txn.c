/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/txn.h"

#include <stdlib.h>

static sim_node *make(const sim_txn *x, const sim_act *a, sim_tree *t)
{
  sim_node *parent = sim_tree_node(t, a->path->parent);

  if (parent == NULL || sim_tree_node(t, a->path) != NULL)
    abort(); /* the model is broken: the leader saw to both */
  /* A counter that does not grow is not kept, and at the end of its range it
   * does not; the zxid of the change is forgotten with it. */
  if (a->counter > parent->counter) {
    parent->counter = a->counter;
    parent->stat.pzxid = x->zxid;
  }
  sim_node *n = sim_tree_add(t, a->path);

  n->has_data = a->data.at != NULL;
  n->data = a->data.at;
  n->container = a->container;
  n->ttl_ms = a->ttl_ms;
  n->access = a->access;
  n->perms = a->access->everybody;
  n->stat = (lk_stat){.czxid = x->zxid,
                      .mzxid = x->zxid,
                      .ctime = x->time_ms,
                      .mtime = x->time_ms,
                      .ephemeral_owner = a->owner,
                      .data_length = (int32_t)a->data.len,
                      .pzxid = x->zxid};
  if (a->owner != 0)
    sim_tree_own(t, n);
  return n;
}

static void unmake(const sim_txn *x, sim_node *n, sim_tree *t)
{
  if (n->children != NULL)
    abort();
  if (x->zxid > n->parent->stat.pzxid)
    n->parent->stat.pzxid = x->zxid;
  sim_tree_remove(t, n);
}

static void set(const sim_txn *x, const sim_act *a, sim_node *n)
{
  n->has_data = a->data.at != NULL;
  n->data = a->data.at;
  n->stat.data_length = (int32_t)a->data.len;
  n->stat.mzxid = x->zxid;
  n->stat.mtime = x->time_ms;
  n->stat.version = a->version;
}

/* A change that is about a node. */
static sim_node *act(const sim_txn *x, const sim_act *a, sim_tree *t,
                     const sim_changes *changes)
{
  sim_node *n = sim_tree_node(t, a->path);

  switch (a->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    n = make(x, a, t);
    if (changes->created != NULL)
      changes->created(n, changes->arg);
    return n;
  case LK_OPCODE_DELETE:
  case SIM_OP_DELETE_CONTAINER:
    if (n == NULL)
      return NULL; /* of a session that ended: it may have gone before */
    unmake(x, n, t);
    if (changes->deleted != NULL)
      changes->deleted(n, x->zxid, changes->arg);
    return NULL;
  case LK_OPCODE_SET_DATA:
    if (n == NULL)
      abort();
    set(x, a, n);
    if (changes->data_set != NULL)
      changes->data_set(n, changes->arg);
    return n;
  case LK_OPCODE_SET_ACL:
    if (n == NULL)
      abort();
    n->access = a->access;
    n->perms = a->access->everybody;
    n->stat.aversion = a->version;
    if (changes->access_set != NULL)
      changes->access_set(n, x->zxid, changes->arg);
    return n;
  default: return n; /* a check */
  }
}

void sim_txn_apply(const sim_txn *x, sim_tree *t, const sim_changes *changes,
                   lk_stat *stats)
{
  if (x->op == SIM_OP_CREATE_SESSION && x->err == 0)
    sim_tree_begin_session(t, x->session, x->timeout_ms);
  for (size_t i = 0; i < x->count && x->err == 0; i++) {
    const sim_node *n = act(x, &x->acts[i], t, changes);

    if (stats != NULL && n != NULL)
      stats[i] = n->stat;
  }
  if (x->op == LK_OPCODE_CLOSE_SESSION)
    sim_tree_end_session(t, x->session);
  t->zxid = x->zxid;
}
