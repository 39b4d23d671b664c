/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/txn.h"

#include <stdlib.h>

static sim_node *apply_create(const sim_txn *x, const sim_txn_operation *o,
                              sim_tree *t)
{
  sim_node *parent = sim_tree_node(t, o->path->parent);

  if (parent == NULL || sim_tree_node(t, o->path) != NULL)
    abort(); /* prepare.c has validated both */
  /* A server stores a new counter only if it is larger than the old one, and
   * then updates pzxid as well. When the counter has overflowed, the new value
   * is smaller, so neither of them hooks any more. */
  if (o->counter > parent->counter) {
    parent->counter = o->counter;
    parent->stat.pzxid = x->zxid;
  }
  sim_node *n = sim_tree_add(t, o->path);

  n->has_data = o->data.at != NULL;
  n->data = o->data.at;
  n->container = o->container;
  n->ttl_ms = o->ttl_ms;
  n->access = o->access;
  n->perms = o->access->world_perms;
  n->stat = (lk_stat){.czxid = x->zxid,
                      .mzxid = x->zxid,
                      .ctime = x->time_ms,
                      .mtime = x->time_ms,
                      .ephemeral_owner = o->owner,
                      .data_length = (int32_t)o->data.len,
                      .pzxid = x->zxid};
  if (o->owner != 0)
    sim_tree_add_ephemeral(t, n);
  return n;
}

static void apply_delete(const sim_txn *x, sim_node *n, sim_tree *t)
{
  if (n->children != NULL)
    abort(); /* prepare.c has validated it */
  if (x->zxid > n->parent->stat.pzxid)
    n->parent->stat.pzxid = x->zxid;
  sim_tree_remove(t, n);
}

static void apply_set_data(const sim_txn *x, const sim_txn_operation *o,
                           sim_node *n)
{
  n->has_data = o->data.at != NULL;
  n->data = o->data.at;
  n->stat.data_length = (int32_t)o->data.len;
  n->stat.mzxid = x->zxid;
  n->stat.mtime = x->time_ms;
  n->stat.version = o->version;
}

/* Applies one operation. Returns the node as it is after the operation; NULL:
 * it does not exist. */
static sim_node *apply_operation(const sim_txn *x, const sim_txn_operation *o,
                                 sim_tree *t, const sim_txn_hooks *hooks)
{
  sim_node *n = sim_tree_node(t, o->path);

  switch (o->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    n = apply_create(x, o, t);
    if (hooks->created != NULL)
      hooks->created(n, hooks->arg);
    return n;
  case LK_OPCODE_DELETE:
  case SIM_OP_DELETE_CONTAINER:
    if (n == NULL)
      return NULL; /* closeSession: the node may have been deleted before */
    apply_delete(x, n, t);
    if (hooks->deleted != NULL)
      hooks->deleted(n, x->zxid, hooks->arg);
    return NULL;
  case LK_OPCODE_SET_DATA:
    if (n == NULL)
      abort(); /* prepare.c has validated it */
    apply_set_data(x, o, n);
    if (hooks->data_set != NULL)
      hooks->data_set(n, hooks->arg);
    return n;
  case LK_OPCODE_SET_ACL:
    if (n == NULL)
      abort(); /* prepare.c has validated it */
    n->access = o->access;
    n->perms = o->access->world_perms;
    n->stat.aversion = o->version;
    if (hooks->access_set != NULL)
      hooks->access_set(n, x->zxid, hooks->arg);
    return n;
  default: return n; /* check */
  }
}

void sim_txn_apply(const sim_txn *x, sim_tree *t, const sim_txn_hooks *hooks,
                   lk_stat *stats)
{
  t->zxid = x->zxid; /* events of the hooks may have it */
  if (x->op == SIM_OP_CREATE_SESSION && x->err == 0)
    sim_tree_begin_session(t, x->session, x->timeout_ms);
  for (size_t i = 0; x->err == 0 && i < x->count; i++) {
    const sim_node *n = apply_operation(x, &x->operations[i], t, hooks);

    if (stats != NULL && n != NULL)
      stats[i] = n->stat;
  }
  if (x->op == LK_OPCODE_CLOSE_SESSION)
    sim_tree_end_session(t, x->session);
}
