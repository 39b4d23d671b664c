/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/model_server.h"

#include "proto/wire/multi.h"
#include "proto/wire/opcode.h"
#include "sim/model/read_only.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool is_so, const char *what)
{
  if (is_so)
    return;
  fprintf(stderr, "model server: %s\n", what);
  abort();
}

/* ---- the model ----------------------------------------------------------- */

static sim_server *server_of(const model_server *s)
{
  return sim_ensemble_server(s->ensemble, 0);
}

/* Run the model until all proposals are applied. */
static void settle(model_server *s)
{
  const sim_server *m = server_of(s);

  while (m->applied < m->log_count)
    must(sim_step(&s->agenda), "the model has nothing to do");
}

static void elect(model_server *s)
{
  while (!sim_server_serves(server_of(s)))
    must(sim_step(&s->agenda), "the model elects nobody");
}

void model_init(model_server *s)
{
  const sim_ensemble_config config = {.servers = 1,
                                      .tick_ms = 2,
                                      .min_timeout_ms = 1,
                                      .max_timeout_ms = INT32_MAX,
                                      .sweep_ms = INT32_MAX,
                                      .disk_delay_us = {1, 1},
                                      .election_us = {1, 1}};

  memset(s, 0, sizeof *s);
  s->now = s->then = 1000000; /* any time but 0 */
  s->seed = 1;
  s->max_timeout_ms = 40000;
  s->trace.agenda = &s->agenda;
  s->trace.out = getenv("SIM_TRACE") == NULL ? NULL : stderr;
  s->ensemble =
      sim_ensemble_new(&config, &s->agenda, (sim_rng){1}, &s->trace, NULL);
  elect(s);
}

void model_keep_time(model_server *s)
{
  int64_t end = s->agenda.now_us + (s->now - s->then) * SIM_MS;

  s->then = s->now;
  if (!s->expires)
    return;
  while (sim_next_us(&s->agenda) <= end)
    sim_step(&s->agenda);
  if (s->agenda.now_us < end)
    s->agenda.now_us = end;
}

int64_t model_next_event(const model_server *s)
{
  if (!s->expires)
    return INT64_MAX;
  return s->now + (sim_next_us(&s->agenda) - s->agenda.now_us) / SIM_MS + 1;
}

/* ---- connections --------------------------------------------------------- */

static void on_output(const void *bytes, size_t len, void *arg)
{
  model_link *l = arg;

  must(lk__buf_append(&l->out, bytes, len), "no memory");
}

static void on_closed(void *arg)
{
  model_link *l = arg;

  l->conn = NULL;
  l->closed_by_server = true;
}

static void feed(model_link *l, lk_bytes frame)
{
  lk_buf whole = wire_buf();

  wire_bytes(&whole, frame); /* adds the length in front */
  sim_conn_input(l->conn, lk__buf_bytes(&whole), lk__buf_len(&whole));
  lk__buf_free(&whole);
  settle(l->server);
}

void model_read_connect(model_link *l, lk_bytes frame)
{
  const sim_conn_hooks hooks = {on_output, on_closed, l};
  model_server *s = l->server;
  struct lk_connect_request q;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  must(lk__record_decode(&lk__connect_request_record, &q, &in, NULL) == 0,
       "malformed connect request");
  bool accepts_read_only = lk__reader_left(&in) > 0 && lk__reader_bool(&in);

  must(q.session_id == 0 || q.session_id != s->read_only_session,
       "a read_only_session was resumed");
  must(q.session_id == 0 || !accepts_read_only,
       "a session was offered to anyone");
  l->greeted = true;
  sim_server_limit_timeouts(server_of(s), 1, s->max_timeout_ms);
  l->conn = sim_server_accept(server_of(s), &hooks);
  must(l->conn != NULL, "the server does not run");
  feed(l, frame);
  if (l->conn == NULL)
    return;
  l->session = l->conn->session;
  l->timeout_ms = l->conn->timeout_ms;
  if (server_of(s)->read_only)
    s->read_only_session = l->session;
  else
    l->last_session = l->session;
}

void model_hang_up(model_link *l)
{
  if (l->conn != NULL)
    sim_conn_close(l->conn);
  l->conn = NULL;
  lk__buf_consume(&l->in, lk__buf_len(&l->in));
  lk__buf_consume(&l->out, lk__buf_len(&l->out));
  l->up = false;
  l->greeted = false;
  l->closed_by_server = false;
  l->logged_connect = false;
  l->session = 0;
}

/* ---- requests, and what goes wrong with them ----------------------------- */

static void path_of(char *out, size_t size, int32_t op, const lk_reader *body)
{
  lk_reader in = *body;
  lk_bytes path = {0};

  if (op != LK_OPCODE_MULTI)
    path = lk__reader_bytes(&in);
  must(path.len < size, "a path that is too long");
  if (path.len > 0)
    memcpy(out, path.at, path.len);
  out[path.len] = '\0';
}

static bool is_unknown_request(const model_server *s, int32_t op)
{
  return (s->no_containers && op == LK_OPCODE_CREATE_CONTAINER) ||
         (s->no_ephemerals && op == LK_OPCODE_GET_EPHEMERALS);
}

static bool is_forbidden(const model_link *l, int32_t op, const char *path)
{
  const model_server *s = l->server;
  const sim_node *n =
      s->strict && op == LK_OPCODE_EXISTS ? model_node(s, path) : NULL;

  return n != NULL && !sim_access_allows(n->access, l->conn->ids, LK_PERM_READ);
}

/* The number of operations of a multi, whose request header was read. */
static size_t count_operations(lk_reader *in)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation operation;
  size_t count = 0;

  while (lk__operation_decode(in, LK_OPERATIONS_OF_REQUEST, &arena, &operation))
    count++;
  lk__arena_free(&arena);
  return count;
}

/* Reply with the error in each result; the header has none. */
static void answer_in_results(lk_buf *out, int32_t xid, int64_t zxid, int err,
                              lk_reader *in)
{
  const struct lk_multi_header result = {.type = LK_OPCODE_ERROR, .err = err};
  const struct lk_multi_header last = {.type = -1, .done = true, .err = -1};
  size_t frame = wire_begin(out);

  wire_header(out, xid, zxid, 0);
  for (size_t n = count_operations(in); n > 0; n--) {
    wire_record(out, &lk__multi_header_record, &result);
    wire_int(out, err);
  }
  wire_record(out, &lk__multi_header_record, &last);
  wire_end(out, frame);
}

bool model_serve(model_link *l, lk_bytes frame)
{
  model_server *s = l->server;
  int64_t zxid = server_of(s)->tree.zxid;
  char path[8192];
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);

  if (op == LK_OPCODE_PING || op == LK_OPCODE_AUTH) {
    feed(l, frame);
    return true;
  }
  must(!server_of(s)->read_only || lk__opcode_info(op)->served_read_only ||
           op == LK_OPCODE_CLOSE_SESSION,
       "a write without a quorum");
  l->requests++;
  if (l->requests == l->cut_at && !l->cut_after)
    return false;
  path_of(path, sizeof path, op, &in);
  if (s->before != NULL)
    s->before(s, l, op, path);
  if (l->conn == NULL)
    return true;
  if (l->requests == l->throttle_at) {
    wire_reply(&l->out, xid, zxid, LK_ERR_THROTTLED);
  } else if (l->requests == l->answer_at) {
    wire_reply(&l->out, xid, zxid, l->answer_err);
  } else if (l->multi_err != 0 && op == LK_OPCODE_MULTI) {
    answer_in_results(&l->out, xid, zxid, l->multi_err, &in);
  } else if (is_unknown_request(s, op)) {
    wire_reply(&l->out, xid, zxid, LK_ERR_UNIMPLEMENTED);
    l->closed_by_server = true;
  } else if (is_forbidden(l, op, path)) {
    wire_reply(&l->out, xid, zxid, LK_ERR_NO_AUTH);
  } else {
    feed(l, frame);
  }
  return l->requests != l->cut_at;
}

/* ---- sessions ------------------------------------------------------------ */

void model_expire(model_server *s, int64_t session)
{
  sim_operator_expire(s->ensemble, session);
  settle(s);
}

void model_lose_quorum(model_server *s)
{
  sim_server *m = server_of(s);

  sim_enter_looking(m, "has lost its quorum");
  sim_server_cancel(m, SIM_TASK_ELECT);
  sim_read_only_begin(m);
}

void model_regain_quorum(model_server *s)
{
  sim_server *m = server_of(s);

  if (!m->read_only)
    return;
  sim_read_only_end(m);
  sim_elect(m);
  elect(s);
}

/* ---- an operator --------------------------------------------------------- */

static void submit_as(model_server *s, int64_t session, int32_t op,
                      const sim_operation *want)
{
  sim_pipeline_submit(
      server_of(s), NULL,
      sim_write_request_new(session, op, want, &s->ensemble->arena));
  settle(s);
}

void model_create(model_server *s, const char *path)
{
  must(model_node(s, path) == NULL, "cannot create");
  must(sim_operator_create(s->ensemble, path, ""), "no leader");
  settle(s);
  must(model_node(s, path) != NULL, "cannot create");
}

void model_create_ephemeral(model_server *s, const char *path, const char *data,
                            int64_t session)
{
  sim_operation want = {.path = lk_text(path),
                        .data = lk_text(data),
                        .flags = LK_EPHEMERAL,
                        .acl = lk__vec_of(sim_access_open.entries, 1)};

  if (sim_tree_session(&server_of(s)->tree, session) == NULL) {
    sim_write_request *ask =
        lk__arena_take(&s->ensemble->arena, 1, sizeof *ask);

    *ask = (sim_write_request){.session = session,
                               .op = SIM_OP_CREATE_SESSION,
                               .timeout_ms = s->max_timeout_ms};
    sim_pipeline_submit(server_of(s), NULL, ask);
  }
  submit_as(s, session, LK_OPCODE_CREATE, &want);
  must(model_node(s, path) != NULL, "cannot create");
}

void model_delete(model_server *s, const char *path)
{
  must(model_node(s, path) != NULL, "nothing to delete");
  must(sim_operator_delete(s->ensemble, path), "no leader");
  settle(s);
  must(model_node(s, path) == NULL, "cannot delete");
}

void model_set(model_server *s, const char *path, const char *data)
{
  must(model_node(s, path) != NULL, "nothing to set");
  must(sim_operator_set(s->ensemble, path, data), "no leader");
  settle(s);
}

void model_deny(model_server *s, const char *path, int32_t perms)
{
  must(model_node(s, path) != NULL, "nothing to deny");
  must(sim_operator_deny(s->ensemble, path, perms), "no leader");
  settle(s);
}

void model_deny_owned(model_server *s, int64_t session, int32_t perms)
{
  const sim_committed_session *logon =
      sim_tree_session(&server_of(s)->tree, session);

  must(logon != NULL, "no such session");
  for (const sim_node *n = logon->owned; n != NULL; n = n->next_owned)
    model_deny(s, n->path, perms);
}

void model_backdate(model_server *s, const char *path)
{
  const sim_node *found = model_node(s, path);
  sim_node *n =
      found == NULL ? NULL : sim_tree_node(&server_of(s)->tree, found->key);

  if (n == NULL)
    abort();
  n->stat.czxid = 1; /* the first transaction */
}

void model_counter(model_server *s, const char *path, int32_t counter)
{
  must(model_node(s, path) != NULL, "nothing to count");
  sim_operator_set_counter(s->ensemble, path, counter);
}

void model_sweep(model_server *s)
{
  size_t before;

  do { /* again, since deleting a container may empty the one above */
    before = server_of(s)->tree.count;
    sim_leader_delete_unused(server_of(s));
    settle(s);
  } while (server_of(s)->tree.count < before);
}

/* ---- nodes --------------------------------------------------------------- */

void model_drop_watches(model_link *l)
{
  if (l->conn != NULL)
    sim_watches_remove_of_conn(l->conn);
}

size_t model_watches(const model_link *l)
{
  return l->conn == NULL ? 0
                         : sim_watches_of_conn(l->conn, SIM_WATCH_DATA) +
                               sim_watches_of_conn(l->conn, SIM_WATCH_CHILD);
}

const sim_node *model_node(const model_server *s, const char *path)
{
  return sim_tree_find(&server_of(s)->tree, path);
}

const char *model_acl(const model_server *s, const char *path)
{
  static _Thread_local char text[256];
  const sim_node *n = model_node(s, path);
  const sim_access *a = n == NULL ? &sim_access_open : n->access;
  size_t at = 0;

  must(n != NULL, "no such node");
  for (size_t i = 0; i < a->count && at < sizeof text; i++)
    at += (size_t)snprintf(
        text + at, sizeof text - at, "%s%d %.*s %.*s", i == 0 ? "" : ", ",
        (int)a->entries[i].perms, (int)a->entries[i].scheme.len,
        (const char *)a->entries[i].scheme.at, (int)a->entries[i].id.len,
        (const char *)a->entries[i].id.at);
  return text;
}

size_t model_children(const model_server *s, const char *path)
{
  const sim_node *n = model_node(s, path);
  size_t count = 0;

  for (const sim_node *k = n == NULL ? NULL : n->children; k != NULL;
       k = k->next)
    count++;
  return count;
}

enum { SEQUENCE_NUMBER_LEN = 10 };

static int compare_sequence_numbers(const void *a, const void *b)
{
  const char *x = *(const char *const *)a;
  const char *y = *(const char *const *)b;

  return strcmp(x + strlen(x) - SEQUENCE_NUMBER_LEN,
                y + strlen(y) - SEQUENCE_NUMBER_LEN);
}

const char *model_child(const model_server *s, const char *path, size_t i)
{
  const sim_node *n = model_node(s, path);
  const char *paths[256];
  size_t count = 0;

  for (const sim_node *k = n == NULL ? NULL : n->children; k != NULL;
       k = k->next) {
    if (strlen(k->path) < SEQUENCE_NUMBER_LEN)
      continue;
    must(count < 256, "too many children");
    paths[count++] = k->path;
  }
  qsort(paths, count, sizeof paths[0], compare_sequence_numbers);
  return i < count ? paths[i] : NULL;
}

const char *model_ephemeral(const model_server *s)
{
  const sim_tree *t = &server_of(s)->tree;

  for (size_t i = 0; i < t->nsessions; i++) {
    if (t->sessions[i].owned != NULL)
      return t->sessions[i].owned->path;
  }
  return NULL;
}
