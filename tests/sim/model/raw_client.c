/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/raw_client.h"

#include <latchkey/client.h>

#include "support/wire.h"

#include <stdlib.h>

enum { WAIT_MAX_MS = 60000, POLL_MS = 10, LENGTH_FIELD = 4 };

/* ---- ensemble ----------------------------------------------------------- */

void sim_lab_init(sim_lab *lab, const sim_ensemble_config *config,
                  uint64_t seed, const sim_ensemble_hooks *hooks)
{
  const sim_ensemble_config defaults = {0};

  *lab = (sim_lab){.agenda = {.now_us = 0}};
  lab->trace.agenda = &lab->agenda;
  lab->trace.out = getenv("SIM_TRACE") == NULL ? NULL : stderr;
  lab->ensemble =
      sim_ensemble_new(config == NULL ? &defaults : config, &lab->agenda,
                       (sim_rng){seed}, &lab->trace, hooks);
  sim_lab_wait_serving(lab);
}

void sim_lab_free(sim_lab *lab)
{
  sim_ensemble_free(lab->ensemble);
}

sim_server *sim_lab_server(sim_lab *lab, unsigned i)
{
  return sim_ensemble_server(lab->ensemble, i);
}

void sim_lab_run(sim_lab *lab, int64_t ms)
{
  int64_t end = lab->agenda.now_us + ms * SIM_MS;

  while (sim_next_us(&lab->agenda) <= end)
    sim_step(&lab->agenda);
  lab->agenda.now_us = end;
}

enum { NO_SERVER = -1 };

static int wait_leader_except(sim_lab *lab, int deposed)
{
  for (int waited_ms = 0; waited_ms < WAIT_MAX_MS; waited_ms += POLL_MS) {
    int leader = sim_ensemble_leader(lab->ensemble);

    if (leader >= 0 && leader != deposed)
      return leader;
    sim_lab_run(lab, POLL_MS);
  }
  return NO_SERVER;
}

int sim_lab_wait_leader(sim_lab *lab)
{
  return wait_leader_except(lab, NO_SERVER);
}

int sim_lab_wait_other_leader(sim_lab *lab, unsigned deposed)
{
  return wait_leader_except(lab, (int)deposed);
}

static bool all_running_servers_serve(sim_lab *lab)
{
  for (unsigned i = 0; i < sim_ensemble_size(lab->ensemble); i++) {
    const sim_server *s = sim_lab_server(lab, i);

    if (sim_server_runs(s) && !sim_server_serves(s))
      return false;
  }
  return true;
}

bool sim_lab_wait_serving(sim_lab *lab)
{
  for (int waited_ms = 0; waited_ms < WAIT_MAX_MS; waited_ms += POLL_MS) {
    if (all_running_servers_serve(lab))
      return true;
    sim_lab_run(lab, POLL_MS);
  }
  return false;
}

/* ---- connections -------------------------------------------------------- */

static void on_output(const void *bytes, size_t len, void *arg)
{
  sim_raw_client *c = arg;

  if (!lk__buf_append(&c->in, bytes, len))
    abort();
}

static void on_closed(void *arg)
{
  sim_raw_client *c = arg;

  c->conn = NULL;
}

void sim_raw_client_init(sim_raw_client *c, sim_lab *lab)
{
  *c = (sim_raw_client){.lab = lab, .in = wire_buf()};
}

void sim_raw_client_free(sim_raw_client *c)
{
  sim_raw_client_hang_up(c);
  lk__buf_free(&c->in);
}

void sim_raw_client_open(sim_raw_client *c, unsigned server)
{
  sim_conn_hooks hooks = {on_output, on_closed, c};

  sim_raw_client_hang_up(c);
  lk__buf_free(&c->in);
  c->frame = 0;
  c->conn = sim_server_accept(sim_lab_server(c->lab, server), &hooks);
}

void sim_raw_client_hang_up(sim_raw_client *c)
{
  if (c->conn != NULL)
    sim_conn_close(c->conn);
  c->conn = NULL;
}

/* The length of the first complete frame with its length field; 0: there is
 * none. */
static size_t first_frame_len(const sim_raw_client *c)
{
  lk_reader in;

  lk__reader_init(&in, lk__buf_bytes(&c->in), lk__buf_len(&c->in));
  int32_t len = lk__reader_int(&in);

  if (in.err != 0 || lk__reader_left(&in) < (size_t)len)
    return 0;
  return LENGTH_FIELD + (size_t)len;
}

/* Discards the frame that the caller has read, and waits for the next one.
 * Returns its length with its length field; 0: none has come. */
static size_t wait_frame(sim_raw_client *c)
{
  int64_t end = c->lab->agenda.now_us + WAIT_MAX_MS * SIM_MS;

  lk__buf_consume(&c->in, c->frame);
  c->frame = 0;
  while ((c->frame = first_frame_len(c)) == 0 && c->conn != NULL &&
         sim_next_us(&c->lab->agenda) < end)
    sim_step(&c->lab->agenda);
  return c->frame;
}

bool sim_raw_client_has_bytes(const sim_raw_client *c)
{
  return lk__buf_len(&c->in) > c->frame;
}

static void send(sim_raw_client *c, lk_buf *out)
{
  if (c->conn != NULL)
    sim_conn_input(c->conn, lk__buf_bytes(out), lk__buf_len(out));
  lk__buf_free(out);
}

bool sim_raw_client_connect(sim_raw_client *c, unsigned server,
                            int32_t timeout_ms, int64_t zxid_seen)
{
  struct lk_connect_request r = {.last_zxid_seen = zxid_seen,
                                 .timeout_ms = timeout_ms,
                                 .session_id = c->session,
                                 .password = {c->password, 16}};
  struct lk_connect_reply reply;
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);
  lk_reader in;

  sim_raw_client_open(c, server);
  wire_record(&out, &lk__connect_request_record, &r);
  wire_end(&out, mark);
  send(c, &out);
  size_t len = wait_frame(c);

  if (len == 0)
    return false;
  lk__reader_init(&in, lk__buf_bytes(&c->in) + LENGTH_FIELD,
                  len - LENGTH_FIELD);
  lk__record_decode(&lk__connect_reply_record, &reply, &in, NULL);
  c->timeout_ms = reply.timeout_ms;
  if (reply.session_id == 0 || reply.password.len != 16)
    return false;
  c->session = reply.session_id;
  memcpy(c->password, reply.password.at, 16);
  return true;
}

/* ---- requests ----------------------------------------------------------- */

int32_t sim_raw_client_send_as(sim_raw_client *c, int32_t xid, int32_t op,
                               const void *request)
{
  struct lk_request_header h = {xid, op};
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);

  wire_record(&out, &lk__request_header_record, &h);
  wire_record(&out, lk__opcode_info(op)->request, request);
  wire_end(&out, mark);
  send(c, &out);
  return xid;
}

int32_t sim_raw_client_send(sim_raw_client *c, int32_t op, const void *request)
{
  return sim_raw_client_send_as(c, ++c->xid, op, request);
}

int32_t sim_raw_client_create(sim_raw_client *c, const char *path,
                              int32_t flags)
{
  struct lk_create_request r = {.path = lk_text(path),
                                .data = lk_text(""),
                                .acl = lk__vec_of(lk_acl_open()->entries, 1),
                                .flags = flags};

  return sim_raw_client_send(
      c, flags == LK_CONTAINER ? LK_OPCODE_CREATE_CONTAINER : LK_OPCODE_CREATE2,
      &r);
}

int32_t sim_raw_client_delete(sim_raw_client *c, const char *path)
{
  struct lk_path_version_request r = {lk_text(path), -1};

  return sim_raw_client_send(c, LK_OPCODE_DELETE, &r);
}

int32_t sim_raw_client_read(sim_raw_client *c, int32_t op, const char *path)
{
  struct lk_path_watch_request r = {.path = lk_text(path), .watch = false};

  return sim_raw_client_send(c, op, &r);
}

int32_t sim_raw_client_watch(sim_raw_client *c, int32_t op, const char *path)
{
  struct lk_path_watch_request r = {.path = lk_text(path), .watch = true};

  return sim_raw_client_send(c, op, &r);
}

int32_t sim_raw_client_sync(sim_raw_client *c, const char *path)
{
  struct lk_path_request r = {lk_text(path)};

  return sim_raw_client_send(c, LK_OPCODE_SYNC, &r);
}

sim_reply sim_raw_client_next(sim_raw_client *c)
{
  sim_reply r = {.closed = true};
  size_t len = wait_frame(c);

  if (len == 0)
    return r;
  r.closed = false;
  lk__reader_init(&r.body, lk__buf_bytes(&c->in) + LENGTH_FIELD,
                  len - LENGTH_FIELD);
  r.xid = lk__reader_int(&r.body);
  r.zxid = lk__reader_long(&r.body);
  r.err = lk__reader_int(&r.body);
  return r;
}

/* Discards events until the reply arrives. */
static int wait_reply(sim_raw_client *c, int32_t xid)
{
  sim_reply r;

  do
    r = sim_raw_client_next(c);
  while (!r.closed && r.xid != xid);
  return r.closed ? LK_ERR_CONNECTION_LOSS : r.err;
}

int sim_raw_client_do_create(sim_raw_client *c, const char *path, int32_t flags)
{
  return wait_reply(c, sim_raw_client_create(c, path, flags));
}

int sim_raw_client_do_delete(sim_raw_client *c, const char *path)
{
  return wait_reply(c, sim_raw_client_delete(c, path));
}

int sim_raw_client_do_read(sim_raw_client *c, int32_t op, const char *path)
{
  return wait_reply(c, sim_raw_client_read(c, op, path));
}

int sim_raw_client_do_watch(sim_raw_client *c, int32_t op, const char *path)
{
  return wait_reply(c, sim_raw_client_watch(c, op, path));
}

int sim_raw_client_do_sync(sim_raw_client *c, const char *path)
{
  return wait_reply(c, sim_raw_client_sync(c, path));
}
