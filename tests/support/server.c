/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "support/server.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool is_so, const char *what)
{
  if (is_so)
    return;
  fprintf(stderr, "fake server: %s\n", what);
  abort();
}

/* ---- watches and events ------------------------------------------------ */

static void set_watch(fake_link *l, const char *path, bool children)
{
  fake_watch *w;

  for (w = l->watches; w != NULL; w = w->next) {
    if (w->children == children && strcmp(w->path, path) == 0)
      return;
  }
  w = calloc(1, sizeof *w);
  must(w != NULL, "no memory");
  w->path = strdup(path);
  w->children = children;
  w->next = l->watches;
  l->watches = w;
}

static bool drop_watch(fake_link *l, const char *path, bool children)
{
  for (fake_watch **p = &l->watches; *p != NULL; p = &(*p)->next) {
    fake_watch *w = *p;

    if (w->children != children || strcmp(w->path, path) != 0)
      continue;
    *p = w->next;
    free(w->path);
    free(w);
    return true;
  }
  return false;
}

void fake_drop_watches(fake_link *l)
{
  while (l->watches != NULL)
    drop_watch(l, l->watches->path, l->watches->children);
}

/* Patched servers keep quiet about a node that cannot be read (F15). */
static void fire(fake_server *s, const char *path, int32_t type, bool data,
                 bool children)
{
  const tree_node *n = tree_find(&s->nodes, path);
  bool silent = n != NULL && (n->denied & LK_PERM_READ);

  for (fake_link *l = s->links; l != NULL; l = l->next) {
    bool has = data && drop_watch(l, path, false);

    has = (children && drop_watch(l, path, true)) || has;
    if (has && !silent)
      wire_event(&l->out, type, path);
  }
}

static void fire_parent(fake_server *s, const char *path)
{
  const tree_node *parent = tree_parent(&s->nodes, path);

  if (parent != NULL)
    fire(s, parent->path, LK_EVENT_CHILDREN, false, true);
}

/* ---- writes ------------------------------------------------------------ */

static tree_node *do_create(fake_server *s, const char *path, lk_bytes data,
                            int32_t flags, bool container, int64_t session)
{
  tree_node *n = tree_create(&s->nodes, path, data, flags, container, session);

  fire(s, n->path, LK_EVENT_CREATED, true, false);
  fire_parent(s, n->path);
  return n;
}

static void do_delete(fake_server *s, const char *path)
{
  char *copy = strdup(path);

  must(copy != NULL, "no memory");
  fire(s, copy, LK_EVENT_DELETED, true, true);
  tree_delete(&s->nodes, copy);
  fire_parent(s, copy);
  free(copy);
}

static void do_set(fake_server *s, const char *path, lk_bytes data)
{
  tree_set(&s->nodes, path, data);
  fire(s, path, LK_EVENT_CHANGED, true, false);
}

static void end_session(fake_server *s, int64_t session)
{
  tree_node *n = s->nodes.nodes;

  s->nodes.zxid++;
  while (n != NULL) {
    if (n->stat.ephemeral_owner == session && session != 0) {
      do_delete(s, n->path);
      n = s->nodes.nodes;
    } else {
      n = n->next;
    }
  }
  for (size_t i = 0; i < 64; i++) {
    if (s->sessions[i] == session)
      s->sessions[i] = 0;
  }
}

/* ---- replies ----------------------------------------------------------- */

typedef struct request {
  fake_link *link;
  int32_t xid;
  int32_t op;
  lk_reader in;
  lk_arena arena;
  char path[512];
} request;

static void reply(request *r, int err, const lk_record *rec, const void *body)
{
  lk_buf *out = &r->link->out;
  size_t mark = wire_begin(out);

  wire_header(out, r->xid, r->link->server->nodes.zxid, err);
  if (err == 0 && rec != NULL)
    wire_record(out, rec, body);
  wire_end(out, mark);
}

static void text_of(char *out, size_t size, lk_bytes b)
{
  must(b.at != NULL && b.len < size, "a path that is too long");
  memcpy(out, b.at, b.len);
  out[b.len] = '\0';
}

/* Decode a body that begins with a path. */
static void decode(request *r, const lk_record *rec, void *out)
{
  must(lk__record_decode(rec, out, &r->in, &r->arena) == 0, "malformed body");
  text_of(r->path, sizeof r->path, *(lk_bytes *)out);
}

static void write_acl(char *out, size_t size, lk_vec acl)
{
  const lk_acl *entries = acl.items;
  size_t at = 0;

  for (size_t i = 0; i < acl.count && at < size; i++)
    at += (size_t)snprintf(
        out + at, size - at, "%s%d %.*s %.*s", i == 0 ? "" : ", ",
        (int)entries[i].perms, (int)entries[i].scheme.len,
        (const char *)entries[i].scheme.at, (int)entries[i].id.len,
        (const char *)entries[i].id.at);
}

/* ---- requests ---------------------------------------------------------- */

static void on_create(request *r)
{
  fake_server *s = r->link->server;
  struct lk_create_request q;
  struct lk_path_stat_reply a;
  bool container = r->op == LK_OPCODE_CREATE_CONTAINER;

  decode(r, &lk__create_request_record, &q);
  s->nodes.zxid++;
  if (container && s->no_containers) {
    reply(r, LK_ERR_UNIMPLEMENTED, NULL, NULL);
    r->link->hung_up = true;
    return;
  }
  int err = tree_may_create(&s->nodes, r->path, container ? 0 : q.flags);

  if (err != 0) {
    reply(r, err, NULL, NULL);
    return;
  }
  tree_node *n = do_create(s, r->path, q.data, container ? 0 : q.flags,
                           container, r->link->session);

  write_acl(n->acl, sizeof n->acl, q.acl);
  a.path = lk_text(n->path);
  a.stat = n->stat;
  reply(r, 0,
        r->op == LK_OPCODE_CREATE ? &lk__path_reply_record
                                  : &lk__path_stat_reply_record,
        &a);
}

static void on_delete(request *r)
{
  fake_server *s = r->link->server;
  struct lk_path_version_request q;

  decode(r, &lk__path_version_request_record, &q);
  s->nodes.zxid++;
  int err = tree_may_delete(&s->nodes, r->path, q.version);

  if (err == 0)
    do_delete(s, r->path);
  reply(r, err, NULL, NULL);
}

static void on_set(request *r)
{
  fake_server *s = r->link->server;
  struct lk_set_data_request q;
  struct lk_stat_reply a;

  decode(r, &lk__set_data_request_record, &q);
  s->nodes.zxid++;
  int err = tree_may_set(&s->nodes, r->path, q.version);

  if (err == 0) {
    do_set(s, r->path, q.data);
    a.stat = tree_find(&s->nodes, r->path)->stat;
  }
  reply(r, err, &lk__stat_reply_record, &a);
}

/* Patched servers want READ for it. */
static void on_exists(request *r)
{
  struct lk_path_watch_request q;
  struct lk_stat_reply a;

  decode(r, &lk__path_watch_request_record, &q);
  int err = tree_may_read(&r->link->server->nodes, r->path);

  if (q.watch && (err == 0 || err == LK_ERR_NO_NODE))
    set_watch(r->link, r->path, false);
  if (err == 0)
    a.stat = tree_find(&r->link->server->nodes, r->path)->stat;
  reply(r, err, &lk__stat_reply_record, &a);
}

static void on_get(request *r)
{
  fake_server *s = r->link->server;
  struct lk_path_watch_request q;
  struct lk_data_reply a;

  decode(r, &lk__path_watch_request_record, &q);
  int err = tree_may_read(&s->nodes, r->path);

  if (err == 0) {
    const tree_node *n = tree_find(&s->nodes, r->path);

    if (q.watch)
      set_watch(r->link, r->path, false);
    a.data = lk_bytes_of(n->data, (size_t)n->stat.data_length);
    a.stat = n->stat;
  }
  reply(r, err, &lk__data_reply_record, &a);
}

/* Names come in no order: here, backwards. */
static size_t list(const fake_server *s, const char *path, lk_bytes *out)
{
  size_t count = 0;

  for (const tree_node *n = s->nodes.nodes; n != NULL; n = n->next)
    count += tree_child(n, path) != NULL;
  size_t i = count;

  for (const tree_node *n = s->nodes.nodes; n != NULL && out != NULL;
       n = n->next) {
    if (tree_child(n, path) != NULL)
      out[--i] = lk_text(tree_child(n, path));
  }
  return count;
}

static void on_list(request *r)
{
  fake_server *s = r->link->server;
  struct lk_path_watch_request q;
  struct lk_names_stat_reply a;

  decode(r, &lk__path_watch_request_record, &q);
  int err = tree_may_read(&s->nodes, r->path);

  if (err == 0) {
    size_t count = list(s, r->path, NULL);
    lk_bytes *names = lk__arena_take(&r->arena, count + 1, sizeof *names);

    if (q.watch)
      set_watch(r->link, r->path, true);
    list(s, r->path, names);
    a.names = (lk_vec){names, count};
    a.stat = tree_find(&s->nodes, r->path)->stat;
  }
  reply(r, err, &lk__names_stat_reply_record, &a);
}

static void on_ephemerals(request *r)
{
  fake_server *s = r->link->server;
  lk_bytes *names = lk__arena_take(&r->arena, 1000, sizeof *names);
  struct lk_path_request q;
  struct lk_names_reply a;
  size_t count = 0;

  decode(r, &lk__path_request_record, &q);
  if (s->no_ephemerals) {
    reply(r, LK_ERR_UNIMPLEMENTED, NULL, NULL);
    r->link->hung_up = true;
    return;
  }
  for (const tree_node *n = s->nodes.nodes; n != NULL; n = n->next) {
    if (n->stat.ephemeral_owner == r->link->session &&
        strncmp(n->path, r->path, strlen(r->path)) == 0 && count < 1000)
      names[count++] = lk_text(n->path);
  }
  a.names = (lk_vec){names, count};
  reply(r, 0, &lk__names_reply_record, &a);
}

static void on_sync(request *r)
{
  struct lk_path_request q;
  struct lk_path_reply a;

  decode(r, &lk__path_request_record, &q);
  a.path = lk_text(r->path);
  reply(r, 0, &lk__path_reply_record, &a);
}

static void on_remove(request *r)
{
  struct lk_path_type_request q;

  decode(r, &lk__path_type_request_record, &q);
  reply(r, drop_watch(r->link, r->path, q.type == 1) ? 0 : LK_ERR_NO_WATCHER,
        NULL, NULL);
}

/* ---- multi ------------------------------------------------------------- */

static int may_part(const fake_server *s, const lk_operation *p,
                    const char *path)
{
  const tree_node *n = tree_find(&s->nodes, path);

  switch (p->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
    return tree_may_create(&s->nodes, path, p->body.create.flags);
  case LK_OPCODE_DELETE:
    return tree_may_delete(&s->nodes, path, p->body.path_version.version);
  case LK_OPCODE_SET_DATA:
    return tree_may_set(&s->nodes, path, p->body.set_data.version);
  case LK_OPCODE_CHECK:
    if (n == NULL)
      return LK_ERR_NO_NODE;
    if (n->denied & LK_PERM_READ)
      return LK_ERR_NO_AUTH;
    return p->body.path_version.version != -1 &&
                   p->body.path_version.version != n->stat.version
               ? LK_ERR_BAD_VERSION
               : 0;
  default: must(false, "a part it does not know"); return 0;
  }
}

/* Do a part and make its result of it. */
static void do_part(fake_server *s, fake_link *l, lk_operation *p,
                    const char *path)
{
  const tree_node *n;

  switch (p->type) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2: /* answers as a plain create, as old servers do */
    n = do_create(s, path, p->body.create.data, p->body.create.flags, false,
                  l->session);
    p->type = LK_OPCODE_CREATE;
    p->body.path.path = lk_text(n->path);
    break;
  case LK_OPCODE_DELETE: do_delete(s, path); break;
  case LK_OPCODE_SET_DATA:
    do_set(s, path, p->body.set_data.data);
    p->body.stat.stat = tree_find(&s->nodes, path)->stat;
    break;
  default: break;
  }
  p->err = 0;
}

static void send_parts(request *r, const lk_operation *parts, size_t count)
{
  lk_buf *out = &r->link->out;
  size_t mark = wire_begin(out);
  unsigned char room[8192];
  lk_writer w;

  wire_header(out, r->xid, r->link->server->nodes.zxid, 0);
  lk__writer_init(&w, room, sizeof room);
  for (size_t i = 0; i < count; i++)
    lk__operation_encode(&parts[i], true, &w);
  lk__operation_encode_end(&w);
  must(w.len <= sizeof room && lk__buf_append(out, room, w.len), "no memory");
  wire_end(out, mark);
}

static void on_multi(request *r)
{
  fake_server *s = r->link->server;
  lk_operation parts[80];
  char paths[80][256];
  size_t count = 0;
  size_t failed;

  for (; lk__operation_decode(&r->in, false, &r->arena, &parts[count]);
       count++) {
    text_of(paths[count], sizeof paths[count], parts[count].body.create.path);
    must(count < 79, "a multi that is too long");
  }
  must(r->in.err == 0, "malformed multi");
  s->nodes.zxid++;
  for (failed = 0; failed < count; failed++) {
    if (may_part(s, &parts[failed], paths[failed]) != 0)
      break;
  }
  for (size_t i = 0; i < count; i++) {
    if (failed == count) {
      do_part(s, r->link, &parts[i], paths[i]);
      continue;
    }
    int err = i < failed    ? 0
              : i == failed ? may_part(s, &parts[i], paths[i])
                            : LK_ERR_RUNTIME_INCONSISTENCY;

    parts[i] = (lk_operation){.type = LK_OPCODE_ERROR, .err = err};
    parts[i].body.code.err = err;
  }
  send_parts(r, parts, count);
}

static void execute(request *r)
{
  switch (r->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER: on_create(r); break;
  case LK_OPCODE_DELETE: on_delete(r); break;
  case LK_OPCODE_SET_DATA: on_set(r); break;
  case LK_OPCODE_EXISTS: on_exists(r); break;
  case LK_OPCODE_GET_DATA: on_get(r); break;
  case LK_OPCODE_GET_CHILDREN2: on_list(r); break;
  case LK_OPCODE_GET_EPHEMERALS: on_ephemerals(r); break;
  case LK_OPCODE_SYNC: on_sync(r); break;
  case LK_OPCODE_REMOVE_WATCHES: on_remove(r); break;
  case LK_OPCODE_MULTI: on_multi(r); break;
  case LK_OPCODE_CLOSE_SESSION:
    end_session(r->link->server, r->link->session);
    reply(r, 0, NULL, NULL);
    r->link->hung_up = true;
    break;
  case LK_OPCODE_PING: reply(r, 0, NULL, NULL); break;
  default: must(false, "a request it does not know"); break;
  }
}

/* ---- sessions ---------------------------------------------------------- */

bool fake_lives(const fake_server *s, int64_t session)
{
  for (size_t i = 0; i < 64; i++) {
    if (s->sessions[i] == session && session != 0)
      return true;
  }
  return false;
}

void fake_touch(fake_server *s, int64_t session)
{
  for (size_t i = 0; i < 64; i++) {
    if (s->sessions[i] == session && session != 0)
      s->touched[i] = s->now;
  }
}

/* All clients of tests have one timeout; a server is at most a tick late. */
int64_t fake_expire_due(fake_server *s)
{
  int64_t next = INT64_MAX;

  for (size_t i = 0; i < 64 && s->expires; i++) {
    int64_t due = s->touched[i] + s->timeout_ms;

    if (s->sessions[i] != 0 && due <= s->now)
      fake_expire(s, s->sessions[i]);
    else if (s->sessions[i] != 0 && due < next)
      next = due;
  }
  return next;
}

int64_t fake_new_session(fake_server *s)
{
  size_t i = 0;

  while (s->sessions[i] != 0)
    i++;
  must(i < 64, "too many sessions");
  s->nodes.zxid++;
  s->sessions[i] = s->next_session++;
  return s->sessions[i];
}

/* A frame of a request; false: the connection ends here. */
bool fake_serve(fake_link *l, lk_bytes frame)
{
  request r = {.link = l, .arena = {.mem = &lk__mem_libc}};
  bool ping;

  lk__reader_init(&r.in, frame.at, frame.len);
  r.xid = lk__reader_int(&r.in);
  r.op = lk__reader_int(&r.in);
  ping = r.op == LK_OPCODE_PING;
  must(!l->server->no_quorum || lk__opcode_info(r.op)->read_only ||
           r.op == LK_OPCODE_CLOSE_SESSION,
       "a write without a quorum");
  l->requests += !ping;
  if (!ping && l->requests == l->cut_at && !l->cut_after)
    return false;
  if (!ping && l->server->before != NULL) {
    lk_reader path = r.in;
    lk_bytes text = lk__reader_bytes(&path);

    if (r.op != LK_OPCODE_MULTI && text.at != NULL)
      text_of(r.path, sizeof r.path, text);
    l->server->before(l->server, l, r.op, r.path);
  }
  fake_touch(l->server, l->session);
  if (!ping && l->requests == l->throttle_at)
    reply(&r, LK_ERR_THROTTLED, NULL, NULL);
  else if (!ping && l->requests == l->answer_at)
    reply(&r, l->answer_err, NULL, NULL);
  else if (!fake_lives(l->server, l->session))
    l->hung_up = true; /* its session ended: the server says nothing */
  else
    execute(&r);
  lk__arena_free(&r.arena);
  return ping || l->requests != l->cut_at;
}

/* ---- what tests do ----------------------------------------------------- */

void fake_expire(fake_server *s, int64_t session)
{
  end_session(s, session);
  for (fake_link *l = s->links; l != NULL; l = l->next) {
    if (l->up && l->session == session)
      l->hung_up = true;
  }
}

void fake_create(fake_server *s, const char *path)
{
  s->nodes.zxid++;
  must(tree_may_create(&s->nodes, path, 0) == 0, "cannot create");
  do_create(s, path, lk_bytes_of("", 0), 0, false, 0);
}

void fake_delete(fake_server *s, const char *path)
{
  s->nodes.zxid++;
  must(tree_find(&s->nodes, path) != NULL, "nothing to delete");
  do_delete(s, path);
}

void fake_set(fake_server *s, const char *path, const char *data)
{
  s->nodes.zxid++;
  must(tree_find(&s->nodes, path) != NULL, "nothing to set");
  do_set(s, path, lk_text(data));
}

void fake_deny(fake_server *s, const char *path, int32_t perms)
{
  tree_node *n = tree_find(&s->nodes, path);

  must(n != NULL, "nothing to deny");
  n->denied = perms;
}

void fake_sweep(fake_server *s)
{
  tree_node *n = s->nodes.nodes;

  while (n != NULL) {
    if (n->container && n->counter > 0 && n->stat.num_children == 0) {
      fake_delete(s, n->path);
      n = s->nodes.nodes;
    } else {
      n = n->next;
    }
  }
}

size_t fake_children(const fake_server *s, const char *path)
{
  return list(s, path, NULL);
}

static int by_suffix(const void *a, const void *b)
{
  const char *x = *(const char *const *)a;
  const char *y = *(const char *const *)b;

  return strcmp(x + strlen(x) - 10, y + strlen(y) - 10);
}

const char *fake_child(const fake_server *s, const char *path, size_t i)
{
  const char *paths[256];
  size_t count = 0;

  for (const tree_node *n = s->nodes.nodes; n != NULL; n = n->next) {
    if (tree_child(n, path) == NULL || strlen(n->path) < 10)
      continue;
    must(count < 256, "too many children");
    paths[count++] = n->path;
  }
  qsort(paths, count, sizeof paths[0], by_suffix);
  return i < count ? paths[i] : NULL;
}
