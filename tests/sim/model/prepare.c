/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "proto/wire/path.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/**
 * @file The leader validates a write against the tree as it will be after all
 * proposals (outstanding.c), and makes the transaction.
 */

/* ---- single operations -------------------------------------------------- */

typedef struct preparation {
  sim_server *s; /* the leader */
  const sim_write_request *request;
  const sim_txn *x; /* the transaction that is made */
  int owner;        /* server that received the request */
} preparation;

static bool is_denied(const preparation *prep, const sim_change_record *record,
                      int32_t perm)
{
  return !sim_access_allows(record->access, prep->request->ids, perm);
}

static const sim_access *requested_access(const preparation *prep,
                                          const sim_operation *o)
{
  return sim_access_make(o->acl, prep->request->ids, &prep->s->ensemble->arena);
}

static int access_list_error(const preparation *prep, const sim_operation *o)
{
  return o->acl.items == NULL &&
                 !prep->s->has[SERVER_NULL_ACCESS_LIST_IS_INVALID]
             ? LK_ERR_MARSHALLING
             : LK_ERR_INVALID_ACL;
}

static int check_session(const preparation *prep)
{
  if (prep->request->session == SIM_ENSEMBLE_SESSION)
    return 0;
  return sim_tracker_check(prep->s, prep->request->session, prep->owner);
}

/* The length of the parent's path and the slash behind it; 0: the path has no
 * slash. */
static size_t parent_len(lk_bytes path)
{
  const char *text = path.at;
  size_t len = path.len;

  while (len > 0 && text[len - 1] != '/')
    len--;
  return len;
}

static bool find_parent(const preparation *prep, lk_bytes path,
                        sim_change_record *out)
{
  /* Without the slash. The parent of "/a" is "", which names the root. */
  lk_bytes text = {path.at, parent_len(path) - 1};

  return sim_outstanding_node(
      prep->s, sim_path_find(&prep->s->ensemble->paths, text), out);
}

static bool has_nul(lk_bytes b)
{
  return memchr(b.at, '\0', b.len) != NULL;
}

/* Writes the path to `out`, with the sequence number for a sequential node.
 * Returns its length; 0: the path is invalid. */
static size_t write_node_path(const sim_operation *o, int32_t counter,
                              char *out, size_t cap)
{
  int len =
      snprintf(out, cap, "%.*s", (int)o->path.len, (const char *)o->path.at);

  if ((o->flags & LK_SEQUENTIAL) != 0)
    len += snprintf(out + len, cap - (size_t)len, "%010" PRId32, counter);
  return lk__path_valid(out, LK_PATH_OF_NODE) ? (size_t)len : 0;
}

static void record_create(const preparation *prep, sim_change_record *parent,
                          sim_txn_operation *out)
{
  sim_outstanding *o = &prep->s->outstanding;
  sim_change_record node = {.path = out->path,
                            .exists = true,
                            .access = out->access,
                            .container = out->container,
                            .owner = out->owner};

  parent->children++;
  parent->counter = out->counter;
  sim_outstanding_add(o, parent, prep->x->zxid);
  sim_outstanding_add(o, &node, prep->x->zxid);
}

/* Sets the path of the node to create, if a node can be created there. */
static int prepare_new_path(const preparation *prep, const sim_operation *o,
                            const sim_change_record *parent,
                            sim_txn_operation *out)
{
  size_t cap = o->path.len + 16; /* a sequence number has up to 11 characters */
  char *text = malloc(cap);
  size_t len = write_node_path(o, parent->counter, text, cap);
  sim_change_record existing;
  int err = 0;

  if (len == 0)
    err = LK_ERR_BAD_ARGUMENT;
  else {
    out->path = sim_path_get(&prep->s->ensemble->paths, lk_bytes_of(text, len));
    if (sim_outstanding_node(prep->s, out->path, &existing))
      err = LK_ERR_NODE_EXISTS;
    else if (parent->owner != 0)
      err = LK_ERR_NO_CHILDREN_FOR_EPHEMERALS;
  }
  free(text);
  return err;
}

enum { FLAGS_MAX = 6 };

/* The flags of createTTL, 5 and 6, ask for a node with a TTL, whatever the
 * opcode is. With other flags, a negative TTL crashes a real server, again
 * after each restart. So no test sends it to a real server, and the model
 * refuses it. */
static int check_create_mode(const preparation *prep, const sim_operation *o)
{
  bool is_create_ttl = o->op == LK_OPCODE_CREATE_TTL;

  if (o->flags < 0 || o->flags > FLAGS_MAX)
    return LK_ERR_BAD_ARGUMENT;
  if (o->flags <= LK_CONTAINER)
    return is_create_ttl ? LK_ERR_BAD_ARGUMENT : 0;
  if (!prep->s->ensemble->config.ttls)
    return LK_ERR_UNIMPLEMENTED;
  return is_create_ttl && o->ttl_ms > 0 && o->ttl_ms <= LK_TTL_MAX_MS
             ? 0
             : LK_ERR_BAD_ARGUMENT;
}

static void set_create_mode(const preparation *prep, const sim_operation *o,
                            sim_txn_operation *out)
{
  out->container = o->op == LK_OPCODE_CREATE_CONTAINER;
  out->ttl_ms = o->op == LK_OPCODE_CREATE_TTL ? o->ttl_ms : 0;
  if (!out->container && out->ttl_ms == 0 && (o->flags & LK_EPHEMERAL) != 0)
    out->owner = prep->request->session;
}

static int prepare_create(const preparation *prep, const sim_operation *o,
                          sim_txn_operation *out)
{
  sim_change_record parent;
  int err = check_create_mode(prep, o);

  if (err == 0)
    err = check_session(prep);
  if (err != 0)
    return err;
  if (parent_len(o->path) == 0 || has_nul(o->path))
    return LK_ERR_BAD_ARGUMENT;
  out->access = requested_access(prep, o);
  if (out->access == NULL)
    return access_list_error(prep, o);
  if (!find_parent(prep, o->path, &parent))
    return LK_ERR_NO_NODE;
  if (is_denied(prep, &parent, LK_PERM_CREATE))
    return LK_ERR_NO_AUTH;
  err = prepare_new_path(prep, o, &parent, out);
  if (err != 0)
    return err;
  out->data = o->data;
  set_create_mode(prep, o, out);
  out->counter = (int32_t)((uint32_t)parent.counter + 1);
  record_create(prep, &parent, out);
  return 0;
}

/* Whether the node is one that each server creates itself. These cannot be
 * deleted. */
static bool is_reserved_path(lk_bytes path)
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

static bool version_differs(int32_t actual, int32_t requested)
{
  return requested != -1 && requested != actual; /* -1 matches all versions */
}

static int32_t next_version(int32_t version)
{
  return (int32_t)((uint32_t)version + 1);
}

static void record_delete(const preparation *prep, sim_change_record *parent,
                          const sim_path *p)
{
  sim_change_record deleted = {.path = p};

  parent->children--;
  sim_outstanding_add(&prep->s->outstanding, parent, prep->x->zxid);
  sim_outstanding_add(&prep->s->outstanding, &deleted, prep->x->zxid);
}

static int prepare_delete(const preparation *prep, const sim_operation *o,
                          sim_txn_operation *out)
{
  sim_change_record parent, node;
  int err = check_session(prep);

  if (err != 0)
    return err;
  if (parent_len(o->path) == 0 || has_nul(o->path) || is_reserved_path(o->path))
    return LK_ERR_BAD_ARGUMENT;
  if (!find_parent(prep, o->path, &parent))
    return LK_ERR_NO_NODE;
  out->path = sim_path_find(&prep->s->ensemble->paths, o->path);
  bool exists = sim_outstanding_node(prep->s, out->path, &node);
  bool asks_parent_first = prep->s->has[SERVER_DELETE_ASKS_THE_PARENT_FIRST];

  if (is_denied(prep, &parent, LK_PERM_DELETE) && (exists || asks_parent_first))
    return LK_ERR_NO_AUTH;
  if (!exists)
    return LK_ERR_NO_NODE;
  if (o->op == SIM_OP_DELETE_CONTAINER && node.owner != 0)
    return LK_ERR_BAD_VERSION;
  if (version_differs(node.version, o->version))
    return LK_ERR_BAD_VERSION;
  if (node.children > 0)
    return LK_ERR_NOT_EMPTY;
  record_delete(prep, &parent, out->path);
  return 0;
}

static int32_t perm_for_change(int32_t op)
{
  switch (op) {
  case LK_OPCODE_SET_DATA: return LK_PERM_WRITE;
  case LK_OPCODE_SET_ACL: return LK_PERM_ADMIN;
  default: return LK_PERM_READ; /* check */
  }
}

/* Prepares a setData, setACL or check. */
static int prepare_node_change(const preparation *prep, const sim_operation *o,
                               sim_txn_operation *out)
{
  int32_t perm = perm_for_change(o->op);
  sim_change_record node;
  int err = check_session(prep);

  if (err != 0)
    return err;
  if (has_nul(o->path) || o->path.len == 0 ||
      !lk__path_valid(o->path.at, LK_PATH_OF_NODE))
    return LK_ERR_BAD_ARGUMENT;
  if (o->op == LK_OPCODE_SET_ACL) {
    out->access = requested_access(prep, o);
    if (out->access == NULL)
      return access_list_error(prep, o);
  }
  out->path = sim_path_find(&prep->s->ensemble->paths, o->path);
  if (!sim_outstanding_node(prep->s, out->path, &node))
    return LK_ERR_NO_NODE;
  if (is_denied(prep, &node, perm))
    return LK_ERR_NO_AUTH;
  int32_t *version =
      o->op == LK_OPCODE_SET_ACL ? &node.aversion : &node.version;

  if (version_differs(*version, o->version))
    return LK_ERR_BAD_VERSION;
  out->data = o->data;
  out->version = next_version(*version);
  if (o->op == LK_OPCODE_CHECK)
    return 0;
  *version = out->version;
  if (o->op == LK_OPCODE_SET_ACL)
    node.access = out->access;
  sim_outstanding_add(&prep->s->outstanding, &node, prep->x->zxid);
  return 0;
}

static int prepare_operation(const preparation *prep, const sim_operation *o,
                             sim_txn_operation *out)
{
  out->op = o->op;
  out->request_path = o->path.at;
  switch (o->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: return prepare_create(prep, o, out);
  case LK_OPCODE_DELETE:
  case SIM_OP_DELETE_CONTAINER: return prepare_delete(prep, o, out);
  case SIM_OP_CREATE_NO_TTL: return LK_ERR_MARSHALLING;
  case LK_OPCODE_RECONFIG: return LK_ERR_RECONFIG_DISABLED;
  default: return prepare_node_change(prep, o, out);
  }
}

/* ---- transactions ------------------------------------------------------- */

/* If an operation fails, the records of those before it are removed, and those
 * behind it are not validated. */
static int prepare_multi(const preparation *prep, sim_txn_operation *operations)
{
  size_t records_before =
      prep->s->outstanding.count - prep->s->outstanding.first;
  size_t failed = 0; /* index of the last operation prepared */
  int err = 0;

  for (size_t i = 0; i < prep->request->count && err == 0; i++) {
    err =
        prepare_operation(prep, &prep->request->operations[i], &operations[i]);
    failed = i;
  }
  if (err == 0)
    return 0;
  prep->s->outstanding.count = prep->s->outstanding.first + records_before;
  for (size_t i = failed; i < prep->request->count; i++)
    operations[i].err = i == failed ? err : LK_ERR_RUNTIME_INCONSISTENCY;
  return err;
}

/* Adds the delete of a node, unless the transaction has it already. */
static void add_delete(sim_txn *x, const sim_path *p)
{
  for (size_t i = 0; i < x->count; i++) {
    if (x->operations[i].path == p)
      return;
  }
  x->operations[x->count++] = (sim_txn_operation){
      .op = LK_OPCODE_DELETE, .request_path = p->text, .path = p};
}

static void shuffle_operations(sim_server *s, sim_txn *x)
{
  for (size_t i = 0; i + 1 < x->count; i++) {
    size_t k = i + sim_roll(&s->rng, (uint32_t)(x->count - i));
    sim_txn_operation swap = x->operations[i];

    x->operations[i] = x->operations[k];
    x->operations[k] = swap;
  }
}

/* Deletes the ephemeral nodes of the session in random order, also those whose
 * creates are not applied yet. As in ZooKeeper, the records of their parents
 * are not updated, so their child counts change only when the transaction is
 * applied. */
static void prepare_close_session(const preparation *prep, sim_txn *x)
{
  sim_server *s = prep->s;
  const sim_committed_session *session =
      sim_tree_session(&s->tree, prep->request->session);
  const sim_node *owned = session == NULL ? NULL : session->owned;
  size_t end = s->outstanding.count; /* further records are added below */
  size_t cap = end - s->outstanding.first;
  sim_change_record record;

  for (const sim_node *n = owned; n != NULL; n = n->next_owned)
    cap++;
  x->operations =
      lk__arena_take(&s->ensemble->arena, cap + 1, sizeof *x->operations);
  for (const sim_node *n = owned; n != NULL; n = n->next_owned) {
    if (sim_outstanding_node(s, n->key, &record) &&
        record.owner == prep->request->session)
      add_delete(x, n->key);
  }
  for (size_t i = s->outstanding.first; i < end; i++) {
    if (sim_outstanding_node(s, s->outstanding.records[i].path, &record) &&
        record.owner == prep->request->session)
      add_delete(x, record.path);
  }
  shuffle_operations(s, x);
  for (size_t i = 0; i < x->count; i++) {
    record = (sim_change_record){.path = x->operations[i].path};
    sim_outstanding_add(&s->outstanding, &record, x->zxid);
  }
}

const sim_txn *sim_prepare_txn(sim_server *leader,
                               const sim_write_request *request, int64_t zxid,
                               int owner)
{
  sim_ensemble *e = leader->ensemble;
  sim_txn *x = lk__arena_take(&e->arena, 1, sizeof *x);
  preparation prep = {.s = leader, .request = request, .x = x, .owner = owner};

  *x = (sim_txn){.zxid = zxid,
                 .time_ms =
                     e->config.wall_clock_start_ms + e->agenda->now_us / SIM_MS,
                 .session = request->session,
                 .xid = request->xid,
                 .op = request->op,
                 .err = request->err,
                 .timeout_ms = request->timeout_ms,
                 .expired = request->expired};
  if (request->err != 0 || request->op == SIM_OP_CREATE_SESSION)
    return x;
  if (request->op == LK_OPCODE_CLOSE_SESSION) {
    prepare_close_session(&prep, x);
    return x;
  }
  x->count = request->count;
  x->operations =
      lk__arena_take(&e->arena, request->count, sizeof *x->operations);
  x->err = request->op == LK_OPCODE_MULTI
               ? prepare_multi(&prep, x->operations)
               : prepare_operation(&prep, request->operations, x->operations);
  x->moved_in_results = request->op == LK_OPCODE_MULTI &&
                        x->err == LK_ERR_SESSION_MOVED &&
                        !leader->has[SERVER_MOVED_SESSION_CLOSES_ITS_MULTI];
  return x;
}
