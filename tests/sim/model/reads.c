/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "sim/model/reads.h"
#include "sim/model/text.h"

/**
 * @file Requests that read the tree of the server that receives them.
 */

enum { SCRATCH_KEPT = 1 << 16 }; /* bytes */

void sim_reply_without_body(const sim_read_request *r, int err)
{
  sim_serve(r->c, r->xid, err, NULL, NULL);
}

bool sim_has_nul(lk_bytes b)
{
  return b.len > 0 && memchr(b.at, '\0', b.len) != NULL;
}

const sim_node *sim_node_at(const sim_conn *c, lk_bytes path)
{
  sim_paths *paths = &c->server->ensemble->paths;

  path = sim_path_strip_chroot(c->chroot, path);
  return sim_has_nul(path)
             ? NULL
             : sim_tree_node(&c->server->tree, sim_path_find(paths, path));
}

sim_path *sim_watched_path(const sim_conn *c, lk_bytes path)
{
  sim_paths *paths = &c->server->ensemble->paths;

  path = sim_path_strip_chroot(c->chroot, path);
  return path.len == 0 ? paths->nameless : sim_path_get(paths, path);
}

/* ---- bodies ------------------------------------------------------------- */

static void write_stat(lk_writer *w, const void *arg)
{
  const sim_read_request *r = arg;

  lk__writer_stat(w, &r->node->stat);
}

static void write_data(lk_writer *w, const void *arg)
{
  const sim_node *n = ((const sim_read_request *)arg)->node;

  lk__writer_bytes(w, lk_bytes_of(n->has_data ? n->data : NULL,
                                  (size_t)n->stat.data_length));
  lk__writer_stat(w, &n->stat);
}

/* Puts the children into a random order, since a real server does not list them
 * in the order of creation. The same children always get the same order. */
static void shuffle_children(const sim_node *n, const sim_path **out)
{
  sim_rng r = {(uint64_t)n->stat.pzxid ^ (uint64_t)n->stat.czxid << 32};
  uint32_t count = 0;

  for (const sim_node *k = n->children; k != NULL; k = k->next) {
    uint32_t place = sim_roll(&r, count + 1);

    out[count++] = out[place];
    out[place] = k->key;
  }
}

static void write_names(lk_writer *w, const void *arg)
{
  const sim_read_request *r = arg;
  size_t count = (size_t)r->node->stat.num_children;
  const sim_path **children = lk__arena_take(
      &r->c->server->ensemble->scratch, count + 1, sizeof(const sim_path *));

  shuffle_children(r->node, children);
  lk__writer_count(w, count);
  for (size_t i = 0; i < count; i++)
    lk__writer_bytes(w, sim_path_name(children[i]));
  if (r->op == LK_OPCODE_GET_CHILDREN2)
    lk__writer_stat(w, &r->node->stat);
}

static void write_hidden_digest(lk_writer *w, const lk_acl *a)
{
  char text[200];
  lk_bytes user = sim_id_without_digest(a);
  size_t len = user.len > sizeof text - 2 ? sizeof text - 2 : user.len;

  if (len > 0)
    memcpy(text, user.at, len);
  memcpy(text + len, ":x", 2);
  lk__writer_bytes(w, lk_bytes_of(text, len + 2));
}

static void write_acl(lk_writer *w, const void *arg)
{
  const sim_read_request *r = arg;
  const sim_access *a = r->node->access;

  lk__writer_count(w, a->count);
  for (size_t i = 0; i < a->count; i++) {
    const lk_acl *e = &a->entries[i];

    lk__writer_int(w, e->perms);
    lk__writer_bytes(w, e->scheme);
    bool is_digest =
        e->scheme.len == 6 && memcmp(e->scheme.at, "digest", 6) == 0;

    if (r->hide_digests && is_digest)
      write_hidden_digest(w, e);
    else
      lk__writer_bytes(w, e->id);
  }
  lk__writer_stat(w, &r->node->stat);
}

static int32_t count_below(const sim_node *n)
{
  int32_t count = n->stat.num_children;

  for (const sim_node *k = n->children; k != NULL; k = k->next)
    count += count_below(k);
  return count;
}

static void write_count(lk_writer *w, const void *arg)
{
  const sim_read_request *r = arg;
  bool counts_itself = r->path.len == 0; /* the root, named by "" */

  lk__writer_int(w, count_below(r->node) + (counts_itself ? 1 : 0));
}

/* ---- reads of one node -------------------------------------------------- */

static sim_body *body_of(int32_t op)
{
  switch (op) {
  case LK_OPCODE_GET_DATA: return write_data;
  case LK_OPCODE_GET_ACL: return write_acl;
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER: return write_count;
  case LK_OPCODE_GET_CHILDREN:
  case LK_OPCODE_GET_CHILDREN2: return write_names;
  default: return write_stat;
  }
}

/* The error of a read, or 0. */
static int read_error(const sim_read_request *r)
{
  int32_t perms =
      r->op == LK_OPCODE_GET_ACL ? LK_PERM_READ | LK_PERM_ADMIN : LK_PERM_READ;

  if (r->path.at == NULL)
    return LK_ERR_MARSHALLING;
  if (r->op == LK_OPCODE_EXISTS && sim_has_nul(r->path))
    return LK_ERR_BAD_ARGUMENT;
  if (r->node == NULL)
    return LK_ERR_NO_NODE;
  if ((r->op != LK_OPCODE_EXISTS ||
       r->c->server->has[SERVER_EXISTS_NEEDS_READ]) &&
      !sim_access_allows(r->node->access, r->c->ids, perms))
    return LK_ERR_NO_AUTH;
  return 0;
}

/* Only exists sets a watch on a missing node. */
static void set_watch(const sim_read_request *r, int err)
{
  bool children =
      r->op == LK_OPCODE_GET_CHILDREN || r->op == LK_OPCODE_GET_CHILDREN2;

  if (err == 0 || (err == LK_ERR_NO_NODE && r->op == LK_OPCODE_EXISTS))
    sim_watch_set(r->c, sim_watched_path(r->c, r->path),
                  children ? SIM_WATCH_CHILD : SIM_WATCH_DATA, SIM_WATCH_ONCE);
}

static void read_one(sim_read_request *r, lk_reader *in)
{
  const lk_opcode_info *info = lk__opcode_info(r->op);

  r->path =
      sim_text_as_java(lk__reader_bytes(in), &r->c->server->ensemble->scratch);
  bool watches =
      info->request == &lk__path_watch_request_record && lk__reader_bool(in);

  if (in->err != 0)
    r->path.at = NULL;
  r->node = r->path.at == NULL ? NULL : sim_node_at(r->c, r->path);
  int err = read_error(r);

  if (watches)
    set_watch(r, err);
  r->hide_digests =
      err == 0 && r->op == LK_OPCODE_GET_ACL &&
      !sim_access_allows(r->node->access, r->c->ids, LK_PERM_ADMIN);
  sim_serve(r->c, r->xid, err, err == 0 ? body_of(r->op) : NULL, r);
}

/* ---- multiRead ---------------------------------------------------------- */

typedef struct multi_read {
  sim_read_request *r;
  lk_reader in; /* the operations */
} multi_read;

static void write_result_header(lk_writer *w, int32_t type, int err)
{
  const bool done = false;

  lk__writer_int(w, type);
  lk__writer_bool(w, done);
  lk__writer_int(w, err);
}

static void write_error_result(lk_writer *w, int err)
{
  write_result_header(w, LK_OPCODE_ERROR, err);
  lk__writer_int(w, err);
}

/* Writes the results of the reads of a multiRead. If one cannot be decoded, the
 * results before it are still sent. Returns the error of the reply, or 0. */
static int read_operations(lk_writer *w, const multi_read *m)
{
  lk_reader in = m->in;
  lk_operation operation;
  int err = 0;

  while (err == 0 && lk__operation_decode(&in, LK_OPERATIONS_OF_REQUEST,
                                          &m->r->c->server->ensemble->scratch,
                                          &operation)) {
    sim_read_request read = {.c = m->r->c,
                             .op = operation.type,
                             .path = operation.body.path_watch.path};

    read.node = read.path.at == NULL ? NULL : sim_node_at(read.c, read.path);
    int operation_err = read_error(&read);

    if (operation_err == LK_ERR_MARSHALLING)
      err = operation_err;
    else if (operation_err != 0)
      write_error_result(w, operation_err);
    else {
      write_result_header(w, operation.type, 0);
      body_of(operation.type)(w, &read);
    }
  }
  lk__operation_encode_end(w);
  return err;
}

static void write_results(lk_writer *w, const void *arg)
{
  read_operations(w, arg);
}

static void read_multi(sim_read_request *r, lk_reader *in)
{
  multi_read m = {r, *in};
  lk_writer discarding;
  lk_operation operation;
  bool only_reads = true;

  while (lk__operation_decode(in, LK_OPERATIONS_OF_REQUEST,
                              &r->c->server->ensemble->scratch, &operation))
    only_reads = only_reads && lk__opcode_info(operation.type)->in_multi_read;
  if (in->err != 0 || !only_reads) {
    sim_reply_without_body(r, LK_ERR_MARSHALLING);
    return;
  }
  /* The error precedes the results, so a first pass without room finds it. */
  lk__writer_init(&discarding, NULL, 0);
  sim_serve(r->c, r->xid, read_operations(&discarding, &m), write_results, &m);
}

/* ---- requests about the session ----------------------------------------- */

static bool begins_with(const char *path, lk_bytes prefix)
{
  return prefix.len == 0 || strncmp(path, prefix.at, prefix.len) == 0;
}

static void write_ephemerals(lk_writer *w, const void *arg)
{
  const sim_read_request *r = arg;
  const sim_committed_session *session =
      sim_tree_session(&r->c->server->tree, r->c->session);
  const sim_node *first = session == NULL ? NULL : session->owned;
  size_t count = 0;

  for (const sim_node *n = first; n != NULL; n = n->next_owned) {
    if (begins_with(n->path, r->path))
      count++;
  }
  lk__writer_count(w, count);
  for (const sim_node *n = first; n != NULL; n = n->next_owned) {
    if (begins_with(n->path, r->path))
      sim_write_path_with_chroot(w, r->c->chroot, lk_text(n->path));
  }
}

static void write_ids(lk_writer *w, const void *arg)
{
  const sim_ids *ids = ((const sim_read_request *)arg)->c->ids;

  lk__writer_count(w, ids->count);
  for (size_t i = 0; i < ids->count; i++) {
    lk__writer_bytes(w, ids->entries[i].scheme);
    lk__writer_bytes(w, sim_id_without_digest(&ids->entries[i]));
  }
}

static void list_ephemerals(sim_read_request *r, lk_reader *in)
{
  r->path = sim_path_strip_chroot(r->c->chroot, lk__reader_bytes(in));
  if (in->err != 0)
    sim_reply_without_body(r, LK_ERR_MARSHALLING);
  else
    sim_serve(r->c, r->xid, 0, write_ephemerals, r);
}

/* ---- dispatch ----------------------------------------------------------- */

static void write_text(lk_writer *w, const void *arg)
{
  lk__writer_bytes(w, *(const lk_bytes *)arg);
}

void sim_serve_sync(sim_conn *c, int32_t xid, lk_reader *body)
{
  lk_bytes path =
      sim_text_as_java(lk__reader_bytes(body), &c->server->ensemble->scratch);

  if (body->err == 0)
    sim_serve(c, xid, 0, write_text, &path);
  else
    sim_serve(c, xid, LK_ERR_MARSHALLING, NULL, NULL);
}

void sim_serve_read(sim_conn *c, int32_t xid, int32_t op, lk_reader *body)
{
  sim_read_request r = {.c = c, .xid = xid, .op = op};

  switch (op) {
  case LK_OPCODE_PING:
    r.xid = LK_XID_PING;
    sim_reply_without_body(&r, 0);
    break;
  case LK_OPCODE_SYNC: sim_serve_sync(c, xid, body); break;
  case LK_OPCODE_MULTI_READ: read_multi(&r, body); break;
  case LK_OPCODE_GET_EPHEMERALS: list_ephemerals(&r, body); break;
  case LK_OPCODE_WHO_AM_I: sim_serve(c, xid, 0, write_ids, &r); break;
  case LK_OPCODE_SET_WATCHES:
  case LK_OPCODE_SET_WATCHES2: sim_set_watches(&r, body); break;
  case LK_OPCODE_ADD_WATCH: sim_add_watch(&r, body); break;
  case LK_OPCODE_CHECK_WATCHES:
  case LK_OPCODE_REMOVE_WATCHES: sim_remove_watches(&r, body); break;
  default: read_one(&r, body); break;
  }
  lk__arena_reset(&c->server->ensemble->scratch, SCRATCH_KEPT);
}
