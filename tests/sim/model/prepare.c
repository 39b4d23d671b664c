/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "proto/wire/path.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/**
 * @file
 * The leader decides what comes of a request, as if all that it has proposed
 * were applied; see head.c.
 */

/* ---- single changes ----------------------------------------------------- */

typedef struct decision {
  sim_server *s;
  const sim_write_request *ask;
  const sim_txn *x;
  int owner;
} decision;

static bool denied(const decision *d, const sim_change_record *f, int32_t perm)
{
  return !sim_access_allows(f->access, d->ask->who, perm);
}

static const sim_access *wanted(const decision *d, const sim_operation *w)
{
  return sim_access_make(w->acl, d->ask->who, &d->s->ensemble->arena);
}

static int check_session(const decision *d)
{
  return d->ask->session == 0
             ? 0
             : sim_tracker_check(d->s, d->ask->session, d->owner);
}

/* Where the parent's path ends; 0: there is no slash. */
static size_t parent_len(lk_bytes path)
{
  const char *text = path.at;
  size_t len = path.len;

  while (len > 0 && text[len - 1] != '/')
    len--;
  return len;
}

static bool find_parent(const decision *d, lk_bytes path,
                        sim_change_record *out)
{
  lk_bytes text = {path.at, parent_len(path) - 1};

  return sim_outstanding_look(d->s, sim_path_find(&d->s->ensemble->paths, text),
                              out);
}

static bool has_nul(lk_bytes b)
{
  return memchr(b.at, '\0', b.len) != NULL;
}

/* The path with its number; 0 bytes: it is none. */
static size_t name_node(const sim_operation *w, int32_t counter, char *out,
                        size_t cap)
{
  int len =
      snprintf(out, cap, "%.*s", (int)w->path.len, (const char *)w->path.at);

  if ((w->flags & 2) != 0)
    len += snprintf(out + len, cap - (size_t)len, "%010" PRId32, counter);
  return lk__path_valid(out, false) ? (size_t)len : 0;
}

static void record_create(const decision *d, sim_change_record *parent,
                          sim_act *a)
{
  sim_outstanding *h = &d->s->head;
  sim_change_record node = {.path = a->path,
                            .exists = true,
                            .access = a->access,
                            .container = a->container,
                            .owner = a->owner};

  parent->children++;
  parent->counter = a->counter;
  sim_outstanding_add(h, parent, d->x->zxid);
  sim_outstanding_add(h, &node, d->x->zxid);
}

static int decide_name(const decision *d, const sim_operation *w,
                       const sim_change_record *parent, sim_act *a)
{
  size_t cap = w->path.len + 16;
  char *text = malloc(cap);
  size_t len = name_node(w, parent->counter, text, cap);
  sim_change_record there;
  int err = 0;

  if (len == 0)
    err = LK_ERR_BAD_ARGUMENT;
  else {
    a->path = sim_path_get(&d->s->ensemble->paths, lk_bytes_of(text, len));
    if (sim_outstanding_look(d->s, a->path, &there))
      err = LK_ERR_NODE_EXISTS;
    else if (parent->owner != 0)
      err = LK_ERR_NO_CHILDREN_FOR_EPHEMERALS;
  }
  free(text);
  return err;
}

/* Flags from 5 on stand for a node with a time to live, whatever the opcode is.
 * Without such flags a negative TTL is the end of a real server, and of each of
 * its restarts; nobody sends it, and here it is refused. */
static int check_kind(const decision *d, const sim_operation *w)
{
  bool named = w->op == LK_OPCODE_CREATE_TTL;

  if (w->flags < 0 || w->flags > 6)
    return LK_ERR_BAD_ARGUMENT;
  if (w->flags <= 4)
    return named ? LK_ERR_BAD_ARGUMENT : 0;
  if (!d->s->ensemble->config.ttls)
    return LK_ERR_UNIMPLEMENTED;
  return named && w->ttl_ms > 0 && w->ttl_ms <= LK_TTL_MAX_MS
             ? 0
             : LK_ERR_BAD_ARGUMENT;
}

static void take_kind(const decision *d, const sim_operation *w, sim_act *a)
{
  a->container = w->op == LK_OPCODE_CREATE_CONTAINER;
  a->ttl_ms = w->op == LK_OPCODE_CREATE_TTL ? w->ttl_ms : 0;
  if (!a->container && a->ttl_ms == 0 && (w->flags & LK_EPHEMERAL) != 0)
    a->owner = d->ask->session;
}

static int decide_create(const decision *d, const sim_operation *w, sim_act *a)
{
  sim_change_record parent;
  int err = check_kind(d, w);

  if (err == 0)
    err = check_session(d);
  if (err != 0)
    return err;
  if (parent_len(w->path) == 0 || has_nul(w->path))
    return LK_ERR_BAD_ARGUMENT;
  a->access = wanted(d, w);
  if (a->access == NULL)
    return LK_ERR_INVALID_ACL;
  if (!find_parent(d, w->path, &parent))
    return LK_ERR_NO_NODE;
  if (denied(d, &parent, LK_PERM_CREATE))
    return LK_ERR_NO_AUTH;
  err = decide_name(d, w, &parent, a);
  if (err != 0)
    return err;
  a->data = w->data;
  take_kind(d, w, a);
  a->counter = (int32_t)((uint32_t)parent.counter + 1);
  record_create(d, &parent, a);
  return 0;
}

/* Paths that a server has for itself. */
static bool special(lk_bytes path)
{
  static const char *const paths[] = {"/", "/zookeeper", "/zookeeper/config",
                                      "/zookeeper/quota"};

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    if (strlen(paths[i]) == path.len &&
        memcmp(paths[i], path.at, path.len) == 0)
      return true;
  }
  return false;
}

static bool version_differs(int32_t is, int32_t wanted)
{
  return wanted != -1 && wanted != is;
}

static int32_t one_more(int32_t version)
{
  return (int32_t)((uint32_t)version + 1);
}

static void record_delete(const decision *d, sim_change_record *parent,
                          const sim_path *p)
{
  sim_change_record none = {.path = p};

  parent->children--;
  sim_outstanding_add(&d->s->head, parent, d->x->zxid);
  sim_outstanding_add(&d->s->head, &none, d->x->zxid);
}

static int decide_delete(const decision *d, const sim_operation *w, sim_act *a)
{
  sim_change_record parent, node;
  int err = check_session(d);

  if (err != 0)
    return err;
  if (parent_len(w->path) == 0 || has_nul(w->path) || special(w->path))
    return LK_ERR_BAD_ARGUMENT;
  if (!find_parent(d, w->path, &parent))
    return LK_ERR_NO_NODE;
  if (denied(d, &parent, LK_PERM_DELETE))
    return LK_ERR_NO_AUTH;
  a->path = sim_path_find(&d->s->ensemble->paths, w->path);
  if (!sim_outstanding_look(d->s, a->path, &node))
    return LK_ERR_NO_NODE;
  if (w->op == SIM_OP_DELETE_CONTAINER && node.owner != 0)
    return LK_ERR_BAD_VERSION;
  if (version_differs(node.version, w->version))
    return LK_ERR_BAD_VERSION;
  if (node.children > 0)
    return LK_ERR_NOT_EMPTY;
  record_delete(d, &parent, a->path);
  return 0;
}

/* What set, setACL and check have in common. */
static int decide_change(const decision *d, const sim_operation *w, sim_act *a)
{
  int32_t perm = w->op == LK_OPCODE_SET_DATA  ? LK_PERM_WRITE
                 : w->op == LK_OPCODE_SET_ACL ? LK_PERM_ADMIN
                                              : LK_PERM_READ;
  sim_change_record node;
  int err = check_session(d);

  if (err != 0)
    return err;
  if (has_nul(w->path) || w->path.len == 0 ||
      !lk__path_valid(w->path.at, false))
    return LK_ERR_BAD_ARGUMENT;
  if (w->op == LK_OPCODE_SET_ACL && (a->access = wanted(d, w)) == NULL)
    return LK_ERR_INVALID_ACL;
  a->path = sim_path_find(&d->s->ensemble->paths, w->path);
  if (!sim_outstanding_look(d->s, a->path, &node))
    return LK_ERR_NO_NODE;
  if (denied(d, &node, perm))
    return LK_ERR_NO_AUTH;
  int32_t *version =
      w->op == LK_OPCODE_SET_ACL ? &node.aversion : &node.version;

  if (version_differs(*version, w->version))
    return LK_ERR_BAD_VERSION;
  a->data = w->data;
  a->version = one_more(*version);
  if (w->op == LK_OPCODE_CHECK)
    return 0;
  *version = a->version;
  if (w->op == LK_OPCODE_SET_ACL)
    node.access = a->access;
  sim_outstanding_add(&d->s->head, &node, d->x->zxid);
  return 0;
}

static int decide_one(const decision *d, const sim_operation *w, sim_act *a)
{
  a->op = w->op;
  a->asked = w->path.at;
  switch (w->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: return decide_create(d, w, a);
  case LK_OPCODE_DELETE:
  case SIM_OP_DELETE_CONTAINER: return decide_delete(d, w, a);
  case SIM_OP_CREATE_NO_TTL: return LK_ERR_MARSHALLING;
  case LK_OPCODE_RECONFIG: return LK_ERR_RECONFIG_DISABLED;
  default: return decide_change(d, w, a);
  }
}

/* ---- transactions ------------------------------------------------------- */

/* All or nothing: the first that fails undoes what was recorded, and no other
 * is tried. */
static int decide_multi(const decision *d, sim_act *acts)
{
  size_t before = d->s->head.count - d->s->head.first;
  size_t failed = 0;
  int err = 0;

  for (size_t i = 0; i < d->ask->count && err == 0; i++) {
    err = decide_one(d, &d->ask->wants[i], &acts[i]);
    failed = i;
  }
  if (err == 0)
    return 0;
  d->s->head.count = d->s->head.first + before;
  for (size_t i = failed; i < d->ask->count; i++)
    acts[i].err = i == failed ? err : LK_ERR_RUNTIME_INCONSISTENCY;
  return err;
}

static void close_with(sim_txn *x, const sim_path *p)
{
  for (size_t i = 0; i < x->count; i++) {
    if (x->acts[i].path == p)
      return;
  }
  x->acts[x->count++] =
      (sim_act){.op = LK_OPCODE_DELETE, .asked = p->text, .path = p};
}

static void shuffle(sim_server *s, sim_txn *x)
{
  for (size_t i = 0; i + 1 < x->count; i++) {
    size_t k = i + sim_roll(&s->rng, (uint32_t)(x->count - i));
    sim_act swap = x->acts[i];

    x->acts[i] = x->acts[k];
    x->acts[k] = swap;
  }
}

/* The session's ephemerals, those that are only proposed too, in no order. The
 * counts of their parents stay as they are until it is applied. */
static void decide_close(const decision *d, sim_txn *x)
{
  sim_server *s = d->s;
  const sim_committed_session *l = sim_tree_logon(&s->tree, d->ask->session);
  const sim_node *owned = l == NULL ? NULL : l->owned;
  size_t most = s->head.count - s->head.first, last = s->head.count;
  sim_change_record f;

  for (const sim_node *n = owned; n != NULL; n = n->next_owned)
    most++;
  x->acts = lk__arena_take(&s->ensemble->arena, most + 1, sizeof *x->acts);
  for (const sim_node *n = owned; n != NULL; n = n->next_owned) {
    if (sim_outstanding_look(s, n->key, &f) && f.owner == d->ask->session)
      close_with(x, n->key);
  }
  for (size_t i = s->head.first; i < last; i++) {
    if (sim_outstanding_look(s, s->head.futures[i].path, &f) &&
        f.owner == d->ask->session)
      close_with(x, f.path);
  }
  shuffle(s, x);
  for (size_t i = 0; i < x->count; i++) {
    f = (sim_change_record){.path = x->acts[i].path};
    sim_outstanding_add(&s->head, &f, x->zxid);
  }
}

const sim_txn *sim_outstanding_decide(sim_server *leader,
                                      const sim_write_request *ask,
                                      int64_t zxid, int owner)
{
  sim_ensemble *e = leader->ensemble;
  sim_txn *x = lk__arena_take(&e->arena, 1, sizeof *x);
  decision d = {leader, ask, x, owner};

  *x = (sim_txn){.zxid = zxid,
                 .time_ms = e->config.epoch_ms + e->agenda->now_us / SIM_MS,
                 .session = ask->session,
                 .xid = ask->xid,
                 .op = ask->op,
                 .err = ask->err,
                 .timeout_ms = ask->timeout_ms,
                 .expired = ask->expired};
  if (ask->err != 0 || ask->op == SIM_OP_CREATE_SESSION)
    return x;
  if (ask->op == LK_OPCODE_CLOSE_SESSION) {
    decide_close(&d, x);
    return x;
  }
  x->count = ask->count;
  x->acts = lk__arena_take(&e->arena, ask->count, sizeof *x->acts);
  x->err = ask->op == LK_OPCODE_MULTI ? decide_multi(&d, x->acts)
                                      : decide_one(&d, ask->wants, x->acts);
  return x;
}
