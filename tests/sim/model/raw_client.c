/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/raw_client.h"
#include "support/wire.h"

#include <stdlib.h>

enum { WAIT_MAX_MS = 60000 };

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

int sim_lab_wait_leader(sim_lab *lab, int except)
{
  for (int i = 0; i < WAIT_MAX_MS / 10; i++) {
    int leader = sim_ensemble_leader(lab->ensemble);

    if (leader >= 0 && leader != except)
      return leader;
    sim_lab_run(lab, 10);
  }
  return -1;
}

bool sim_lab_wait_serving(sim_lab *lab)
{
  for (int i = 0; i < WAIT_MAX_MS / 10; i++) {
    unsigned serving = 0, running = 0;

    for (unsigned k = 0; k < sim_ensemble_size(lab->ensemble); k++) {
      serving += sim_server_serves(sim_lab_server(lab, k));
      running += sim_server_runs(sim_lab_server(lab, k));
    }
    if (serving == running)
      return true;
    sim_lab_run(lab, 10);
  }
  return false;
}

/* ---- connections -------------------------------------------------------- */

static void on_output(const void *bytes, size_t len, void *arg)
{
  sim_raw_client *p = arg;

  if (!lk__buf_append(&p->in, bytes, len))
    abort();
}

static void on_closed(void *arg)
{
  sim_raw_client *p = arg;

  p->conn = NULL;
}

void sim_raw_client_init(sim_raw_client *p, sim_lab *lab)
{
  *p = (sim_raw_client){.lab = lab, .in = wire_buf()};
}

void sim_raw_client_free(sim_raw_client *p)
{
  sim_raw_client_hang_up(p);
  lk__buf_free(&p->in);
}

void sim_raw_client_open(sim_raw_client *p, unsigned server)
{
  sim_conn_hooks hooks = {on_output, on_closed, p};

  sim_raw_client_hang_up(p);
  lk__buf_free(&p->in);
  p->frame = 0;
  p->conn = sim_server_accept(sim_lab_server(p->lab, server), &hooks);
}

void sim_raw_client_hang_up(sim_raw_client *p)
{
  if (p->conn != NULL)
    sim_conn_close(p->conn);
  p->conn = NULL;
}

/* The length of the first complete frame with its length field; 0: there is
 * none. */
static size_t whole_frame(const sim_raw_client *p)
{
  lk_reader in;

  lk__reader_init(&in, lk__buf_bytes(&p->in), lk__buf_len(&p->in));
  int32_t len = lk__reader_int(&in);

  return in.err == 0 && lk__reader_left(&in) >= (size_t)len ? (size_t)len + 4
                                                            : 0;
}

static size_t wait_frame(sim_raw_client *p)
{
  int64_t end = p->lab->agenda.now_us + WAIT_MAX_MS * SIM_MS;

  lk__buf_consume(&p->in, p->frame);
  p->frame = 0;
  while ((p->frame = whole_frame(p)) == 0 && p->conn != NULL &&
         sim_next_us(&p->lab->agenda) < end)
    sim_step(&p->lab->agenda);
  return p->frame;
}

bool sim_raw_client_has(const sim_raw_client *p)
{
  return lk__buf_len(&p->in) > p->frame;
}

static void send(sim_raw_client *p, lk_buf *out)
{
  if (p->conn != NULL)
    sim_conn_input(p->conn, lk__buf_bytes(out), lk__buf_len(out));
  lk__buf_free(out);
}

bool sim_raw_client_connect(sim_raw_client *p, unsigned server,
                            int32_t timeout_ms, int64_t zxid_seen)
{
  struct lk_connect_request r = {.last_zxid_seen = zxid_seen,
                                 .timeout_ms = timeout_ms,
                                 .session_id = p->session,
                                 .password = {p->password, 16}};
  struct lk_connect_reply reply;
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);
  lk_reader in;

  sim_raw_client_open(p, server);
  wire_record(&out, &lk__connect_request_record, &r);
  wire_end(&out, mark);
  send(p, &out);
  size_t len = wait_frame(p);

  if (len == 0)
    return false;
  lk__reader_init(&in, lk__buf_bytes(&p->in) + 4, len - 4);
  lk__record_decode(&lk__connect_reply_record, &reply, &in, NULL);
  p->timeout_ms = reply.timeout_ms;
  if (reply.session_id == 0 || reply.password.len != 16)
    return false;
  p->session = reply.session_id;
  memcpy(p->password, reply.password.at, 16);
  return true;
}

/* ---- requests ----------------------------------------------------------- */

int32_t sim_raw_client_send_as(sim_raw_client *p, int32_t xid, int32_t op,
                               const void *request)
{
  struct lk_request_header h = {xid, op};
  lk_buf out = wire_buf();
  size_t mark = wire_begin(&out);

  wire_record(&out, &lk__request_header_record, &h);
  wire_record(&out, lk__opcode_info(op)->request, request);
  wire_end(&out, mark);
  send(p, &out);
  return xid;
}

int32_t sim_raw_client_send(sim_raw_client *p, int32_t op, const void *request)
{
  return sim_raw_client_send_as(p, ++p->xid, op, request);
}

int32_t sim_raw_client_create(sim_raw_client *p, const char *path,
                              int32_t flags)
{
  struct lk_create_request r = {.path = lk_text(path),
                                .data = lk_text(""),
                                .acl = lk__vec_of(lk_acl_open.entries, 1),
                                .flags = flags};

  return sim_raw_client_send(
      p,
      flags == 4 /* container */ ? LK_OPCODE_CREATE_CONTAINER
                                 : LK_OPCODE_CREATE2,
      &r);
}

int32_t sim_raw_client_delete(sim_raw_client *p, const char *path)
{
  struct lk_path_version_request r = {lk_text(path), -1};

  return sim_raw_client_send(p, LK_OPCODE_DELETE, &r);
}

int32_t sim_raw_client_read(sim_raw_client *p, int32_t op, const char *path,
                            bool watch)
{
  struct lk_path_watch_request r = {lk_text(path), watch};

  return sim_raw_client_send(p, op, &r);
}

int32_t sim_raw_client_sync(sim_raw_client *p, const char *path)
{
  struct lk_path_request r = {lk_text(path)};

  return sim_raw_client_send(p, LK_OPCODE_SYNC, &r);
}

sim_reply sim_raw_client_next(sim_raw_client *p)
{
  sim_reply r = {.closed = true};
  size_t len = wait_frame(p);

  if (len == 0)
    return r;
  r.closed = false;
  lk__reader_init(&r.body, lk__buf_bytes(&p->in) + 4, len - 4);
  r.xid = lk__reader_int(&r.body);
  r.zxid = lk__reader_long(&r.body);
  r.err = lk__reader_int(&r.body);
  return r;
}

/* Discards events until the reply arrives. */
static int wait_reply(sim_raw_client *p, int32_t xid)
{
  sim_reply r;

  do
    r = sim_raw_client_next(p);
  while (!r.closed && r.xid != xid);
  return r.closed ? LK_ERR_CONNECTION_LOSS : r.err;
}

int sim_raw_client_do_create(sim_raw_client *p, const char *path, int32_t flags)
{
  return wait_reply(p, sim_raw_client_create(p, path, flags));
}

int sim_raw_client_do_delete(sim_raw_client *p, const char *path)
{
  return wait_reply(p, sim_raw_client_delete(p, path));
}

int sim_raw_client_do_read(sim_raw_client *p, int32_t op, const char *path,
                           bool watch)
{
  return wait_reply(p, sim_raw_client_read(p, op, path, watch));
}

int sim_raw_client_do_sync(sim_raw_client *p, const char *path)
{
  return wait_reply(p, sim_raw_client_sync(p, path));
}
