/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/read_only.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file The server's side of a client connection: frames, the handshake, and
 * requests that are answered at once.
 */

enum {
  FRAME_LEN_MAX = 0xfffff,
  LENGTH_FIELD = 4,
  CONNECT_REPLY_LEN = 36, /* without the read-only byte */
  IDLE_CHECK_MS = 10000,
  NO_SESSION_TIMEOUT_MS = 10000 /* of a connection without a session */
};

/* ---- setup and end ------------------------------------------------------ */

static sim_trace *trace_of(const sim_conn *c)
{
  return c->server->ensemble->trace;
}

sim_conn *sim_server_accept(sim_server *s, const sim_conn_hooks *hooks)
{
  if (!s->runs)
    return NULL;
  sim_conn *c = calloc(1, sizeof *c);

  c->server = s;
  c->hooks = *hooks;
  c->in.mem = &lk__mem_libc;
  c->chroot = "";
  c->ids = sim_ids_new(&s->ensemble->arena);
  c->last_traffic_us = s->ensemble->agenda->now_us;
  lk__list_add(&s->conns, &c->link);
  return c;
}

void sim_conn_chroot(sim_conn *c, const char *chroot)
{
  c->chroot = chroot;
}

static void conn_free(sim_conn *c)
{
  lk__buf_free(&c->in);
  free(c);
}

/* Takes the connection out of the server. Its requests stay in the pipeline,
 * and are executed without a reply. The memory is freed here, or later by the
 * function that is reading from the connection. */
static void conn_detach(sim_conn *c)
{
  c->closed = true;
  sim_watches_remove_of_conn(c);
  sim_pipeline_forget_conn(&c->server->pipeline, c);
  lk__list_remove(&c->link);
  if (!c->reading)
    conn_free(c);
}

void sim_conn_close(sim_conn *c)
{
  if (c->server->stopped) {
    c->gone = true;
    return;
  }
  conn_detach(c);
}

void sim_conn_hang_up(sim_conn *c)
{
  sim_conn_hooks hooks = c->hooks;
  bool client_hung_up = c->gone;

  if (c->closed)
    return;
  conn_detach(c); /* may free `c` */
  if (!client_hung_up)
    hooks.closed(hooks.arg);
}

/* Whether a frame, with its length, is the reply to a ping. */
static bool is_pong(const unsigned char *frame)
{
  enum { XID_OFFSET = 4 };

  return (int32_t)lk__get32(frame + XID_OFFSET) == LK_XID_PING;
}

/* The reply to a ping of a server whose zxid stands still, as on a connection
 * on which no event arrives. */
static void send_mute_pong(sim_conn *c, const unsigned char *frame)
{
  enum { ZXID_OFFSET = 8, ZXID_SIZE = 8, PONG_SIZE = 20 };
  unsigned char pong[PONG_SIZE];

  memcpy(pong, frame, sizeof pong);
  memset(pong + ZXID_OFFSET, 0, ZXID_SIZE);
  c->hooks.output(pong, sizeof pong, c->hooks.arg);
}

bool sim_conn_is_mute(const sim_conn *c)
{
  return c->mute;
}

void sim_conn_send(sim_conn *c, const void *bytes, size_t len)
{
  if (c->closed)
    return;
  if (c->greeted && c->server->mutes > 0)
    c->mute = true;
  if (c->mute) {
    c->last_traffic_us = c->server->ensemble->agenda->now_us;
    if (!c->gone && is_pong(bytes))
      send_mute_pong(c, bytes);
    return;
  }
  c->last_traffic_us = c->server->ensemble->agenda->now_us;
  if (!c->gone)
    c->hooks.output(bytes, len, c->hooks.arg);
}

sim_conn *sim_conn_of_session(const sim_server *s, int64_t session)
{
  for (lk_link *l = s->conns.next; l != &s->conns; l = l->next) {
    sim_conn *c = LK_OWNER(l, sim_conn, link);

    if (c->session == session)
      return c;
  }
  return NULL;
}

void sim_conns_close_all(sim_server *s)
{
  while (!lk__list_empty(&s->conns))
    sim_conn_hang_up(LK_OWNER(s->conns.next, sim_conn, link));
}

void sim_conns_close_idle(sim_server *s)
{
  int64_t now = s->ensemble->agenda->now_us;
  lk_link *next;

  for (lk_link *l = s->conns.next; l != &s->conns; l = next) {
    sim_conn *c = LK_OWNER(l, sim_conn, link);
    int32_t timeout_ms =
        c->session != 0 ? c->timeout_ms : NO_SESSION_TIMEOUT_MS;

    next = l->next;
    if (now - c->last_traffic_us < timeout_ms * SIM_MS)
      continue;
    SIM_TRACE(trace_of(c), s->name, "connection of %" PRIx64 " is idle: closed",
              (uint64_t)c->session);
    sim_conn_hang_up(c);
  }
  sim_server_schedule(s, SIM_TASK_IDLE, IDLE_CHECK_MS * SIM_MS);
}

/* ---- handshake ---------------------------------------------------------- */

/* The password of a session is computed from its id. A real server keeps it
 * secret, but no simulated client tries to guess one. */
static void make_password(int64_t session, unsigned char out[16])
{
  sim_rng r = {(uint64_t)session};
  uint64_t halves[2] = {sim_rng_next(&r), sim_rng_next(&r)};

  memcpy(out, halves, sizeof halves);
}

/* Sends the connect reply. `valid` false: the session is refused, and the
 * connection closed. */
static void send_connect_reply(sim_conn *c, bool valid)
{
  unsigned char frame[LENGTH_FIELD + CONNECT_REPLY_LEN + 1], password[16] = {0};
  int32_t len = CONNECT_REPLY_LEN + (c->read_only_byte ? 1 : 0);
  lk_writer w;

  SIM_TRACE(trace_of(c), c->server->name,
            valid ? "session %" PRIx64 " is connected, timeout %d"
                  : "session %" PRIx64 " is refused",
            (uint64_t)c->session, (int)c->timeout_ms);
  if (valid)
    make_password(c->session, password);
  lk__writer_init(&w, frame, sizeof frame);
  lk__writer_int(&w, len);
  lk__writer_int(&w, 0); /* the protocol version */
  lk__writer_int(&w, valid ? c->timeout_ms : 0);
  lk__writer_long(&w, valid ? c->session : 0);
  lk__writer_bytes(&w, lk_bytes_of(password, sizeof password));
  lk__writer_bool(&w, c->server->read_only);
  sim_conn_send(c, frame, LENGTH_FIELD + (size_t)len);
  c->greeted = true;
  c->awaits_session = false;
  if (valid && c->server->close_early == 0)
    sim_conn_read_buffered(c);
  else
    sim_conn_hang_up(c);
}

void sim_conn_accept_session(sim_conn *c)
{
  send_connect_reply(c, true);
}

void sim_conn_refuse_session(sim_conn *c)
{
  send_connect_reply(c, false);
}

void sim_conns_renew_session_ids(sim_server *s)
{
  if (s->last_session < s->ensemble->agenda->now_us)
    s->last_session = s->ensemble->agenda->now_us;
}

int64_t sim_conn_new_session(sim_server *s)
{
  uint64_t id = (uint64_t)++s->last_session & (UINT64_C(~0) >> 8);
  uint64_t highest_byte = s->index + 1;

  /* Servers with an odd index create ids with the highest bit set, so that
   * negative session ids are tested, too. */
  if (s->index % 2 == 1)
    highest_byte |= 0x80;
  return (int64_t)(highest_byte << 56 | id);
}

static void create_session(sim_conn *c)
{
  sim_server *s = c->server;
  sim_write_request *request =
      lk__arena_take(&s->ensemble->arena, 1, sizeof *request);

  c->session = sim_conn_new_session(s);
  if (s->role == SIM_LEADING)
    sim_tracker_add(s, c->session, c->timeout_ms, SIM_NO_OWNER);
  *request = (sim_write_request){.session = c->session,
                                 .op = SIM_OP_CREATE_SESSION,
                                 .timeout_ms = c->timeout_ms};
  sim_pipeline_submit(s, c, request);
}

static void resume_session(sim_conn *c, int64_t id, lk_bytes password)
{
  sim_server *s = c->server;
  sim_conn *older_conn = sim_conn_of_session(s, id);
  unsigned char expected[16];

  if (older_conn != NULL)
    sim_conn_hang_up(older_conn);
  c->session = id;
  make_password(id, expected);
  if (password.len != sizeof expected ||
      memcmp(password.at, expected, sizeof expected) != 0) {
    sim_conn_refuse_session(c);
    return;
  }
  if (s->role == SIM_LEADING) {
    if (sim_tracker_resume(s, id, c->timeout_ms, s->index))
      sim_conn_accept_session(c);
    else
      sim_conn_refuse_session(c);
    return;
  }
  sim_message m = {
      .type = SIM_MSG_REVALIDATE, .session = id, .timeout_ms = c->timeout_ms};

  sim_send(s, s->leader, &m);
}

static int32_t timeout_within_bounds(const sim_server *s, int32_t requested_ms)
{
  if (requested_ms < s->min_timeout_ms)
    return s->min_timeout_ms;
  return requested_ms > s->max_timeout_ms ? s->max_timeout_ms : requested_ms;
}

static void read_connect_request(sim_conn *c, lk_reader *in)
{
  struct lk_connect_request r;

  if (lk__record_decode(&lk__connect_request_record, &r, in, NULL) != 0) {
    sim_conn_hang_up(c);
    return;
  }
  c->handshake_read = true;
  c->read_only_byte = lk__reader_left(in) > 0;
  bool accepts_read_only = c->read_only_byte && lk__reader_bool(in);

  if (r.last_zxid_seen > c->server->tree.zxid) {
    SIM_TRACE(trace_of(c), c->server->name,
              "refuses a client that has seen %s: it has %s",
              sim_zxid_text(r.last_zxid_seen),
              sim_zxid_text(c->server->tree.zxid));
    sim_conn_hang_up(c);
    return;
  }
  c->timeout_ms = timeout_within_bounds(c->server, r.timeout_ms);
  c->awaits_session = true;
  if (c->server->read_only)
    sim_read_only_connect(c, accepts_read_only, r.session_id);
  else if (r.session_id == 0)
    create_session(c);
  else
    resume_session(c, r.session_id, r.password);
}

/* ---- frames ------------------------------------------------------------- */

/* The zxid in the reply to an auth request. */
enum { AUTH_REPLY_ZXID = 0 };

static void read_auth_frame(sim_conn *c, int32_t xid, lk_reader *in)
{
  struct lk_auth_request r;
  const sim_ids *ids = NULL;

  if (lk__record_decode(&lk__auth_request_record, &r, in, NULL) == 0)
    ids = sim_ids_add(c->ids, r.scheme, r.auth, &c->server->ensemble->arena);
  if (ids == NULL) {
    sim_serve_without_body(c, xid, AUTH_REPLY_ZXID, LK_ERR_AUTH_FAILED);
    sim_conn_hang_up(c);
    return;
  }
  sim_serve_without_body(c, xid, AUTH_REPLY_ZXID, 0);
  c->ids = ids;
}

static void read_frame(sim_conn *c, lk_reader *in)
{
  struct lk_request_header h;

  if (!c->handshake_read) {
    read_connect_request(c, in);
    return;
  }
  if (lk__record_decode(&lk__request_header_record, &h, in, NULL) != 0)
    sim_conn_hang_up(c);
  else if (h.type == LK_OPCODE_AUTH)
    read_auth_frame(c, h.xid, in);
  else
    sim_pipeline_receive(c, h.xid, h.type, in);
}

/* The value of the length field at `b`; -1: it is incomplete. */
static int64_t frame_len(const unsigned char *b, size_t len)
{
  if (len < LENGTH_FIELD)
    return -1;
  return (int64_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                   (uint32_t)b[2] << 8 | b[3]);
}

/* Handles complete frames, until the connection has to wait for its session or
 * is closed. Returns the number of bytes consumed. */
static size_t read_frames(sim_conn *c, const unsigned char *bytes, size_t len)
{
  size_t done = 0;

  while (!c->closed && !c->awaits_session && !c->server->stopped) {
    int64_t size = frame_len(bytes + done, len - done);

    if (size < 0)
      break;
    /* The probe "isro" has no length field. */
    if (!c->handshake_read && memcmp(bytes + done, "isro", 4) == 0) {
      sim_answer_isro(c);
      break;
    }
    if (!(c->server->serves || c->server->read_only) || size > FRAME_LEN_MAX) {
      sim_conn_hang_up(c);
      break;
    }
    if (len - done - LENGTH_FIELD < (uint64_t)size)
      break;
    lk_reader in;

    lk__reader_init(&in, bytes + done + LENGTH_FIELD, (size_t)size);
    done += LENGTH_FIELD + (size_t)size;
    read_frame(c, &in);
  }
  return done;
}

/* A frame may be answered while it is handled, which calls
 * sim_conn_read_buffered() again. The caller has set `reading`, so that this
 * inner call returns at once. */
static void read_buffered_frames(sim_conn *c)
{
  while (lk__buf_len(&c->in) > 0 && !c->closed) {
    size_t done = read_frames(c, lk__buf_bytes(&c->in), lk__buf_len(&c->in));

    if (done == 0)
      break;
    lk__buf_consume(&c->in, done);
  }
}

void sim_conn_read_buffered(sim_conn *c)
{
  if (c->reading)
    return;
  c->reading = true;
  read_buffered_frames(c);
  c->reading = false;
  if (c->closed)
    conn_free(c);
}

void sim_conn_resume_reading(sim_conn *c)
{
  c->reading = true;
  read_buffered_frames(c);
  if (c->gone && !c->closed)
    conn_detach(c);
  c->reading = false;
  if (c->closed)
    conn_free(c);
}

void sim_conn_input(sim_conn *c, const void *bytes, size_t len)
{
  size_t done = 0;

  if (c->closed || len == 0)
    return;
  c->last_traffic_us = c->server->ensemble->agenda->now_us;
  /* Without earlier bytes, complete frames need no copy. */
  if (lk__buf_len(&c->in) == 0 && !c->reading) {
    c->reading = true;
    done = read_frames(c, bytes, len);
    c->reading = false;
  }
  if (c->closed) {
    conn_free(c);
    return;
  }
  if (done < len)
    lk__buf_append(&c->in, (const unsigned char *)bytes + done, len - done);
  if (done == 0) /* the bytes may complete an earlier frame */
    sim_conn_read_buffered(c);
}
