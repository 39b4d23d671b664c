/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/connection.h"

#include <inttypes.h>
#include <stdio.h>

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/hosts.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/sasl.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/session.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

void lk__engine_connection_enter_phase(lk_client *c, lk_phase phase)
{
  c->connection.phase = phase;
}

/* ---- connection attempts ------------------------------------------------- */

void lk__engine_connection_begin(lk_client *c)
{
  const lk_host *h = lk__hosts_current(&c->hosts);
  bool is_ipv6 = strchr(h->name, ':') != NULL;

  c->connection.attempt++;
  lk__engine_connection_enter_phase(c, LK_PHASE_CONNECTING);
  lk__hosts_use(&c->hosts);
  lk__connect_timeout_begin(c);
  snprintf(c->connection.server, sizeof c->connection.server, "%s%s%s:%u",
           is_ipv6 ? "[" : "", h->name, is_ipv6 ? "]" : "", (unsigned)h->port);
  lk__client_wake(c);
}

/* ---- requests that a server does not support ----------------------------- */

/* How long the client does not send a server a request that this server does
 * not know. */
enum { UNSUPPORTED_FOR_MS = 60 * 60 * 1000 };

/* The index of the bit for `op` in lk_unsupported.opcodes, whose 64 bits are
 * enough for all opcodes. */
static unsigned opcode_index(int32_t op)
{
  return (unsigned)(lk__opcode_info(op) - lk__opcodes);
}

void lk__request_note_unsupported(lk_client *c, int32_t op)
{
  lk__client_logf(c, LK_LOG_INFO, LK_ERR_UNIMPLEMENTED, "%s: does not know %s",
                  c->connection.server, lk__opcode_info(op)->name);
  lk__hosts_mark_unsupported(&c->hosts, opcode_index(op),
                             c->now + UNSUPPORTED_FOR_MS);
}

/* Whether the connected server has rejected `op` in the last hour. */
static bool request_is_unsupported(const lk_client *c, int32_t op)
{
  /* The fast path: most servers support everything. */
  return c->hosts.unsupported.opcodes != 0 &&
         lk__hosts_lack_support(&c->hosts, opcode_index(op), c->now);
}

/* A read-only server replies to a write at once, before it has replied to
 * earlier reads. The client could not assign replies out of order, so it
 * refuses the write itself. */
int lk__request_support_error(const lk_client *c, int32_t op)
{
  if (c->connection.read_only && !lk__opcode_info(op)->served_read_only)
    return LK_ERR_NOT_READ_ONLY;
  return request_is_unsupported(c, op) ? LK_ERR_UNIMPLEMENTED : 0;
}

/* ---- the handshake ------------------------------------------------------- */

/* A client with a session does not accept a read-only server, which would treat
 * the session as expired or as one of its own. */
static lk_handshake connect_request(const lk_client *c)
{
  bool read_only = c->options.read_only && !c->move.quorum_only &&
                   c->session.identity.id == 0;

  return (lk_handshake){.last_zxid = c->session.last_zxid,
                        .timeout_ms = c->options.timeout_ms,
                        .session = c->session.identity,
                        .read_only = read_only};
}

void lk__engine_connection_send_handshake(lk_client *c)
{
  lk_handshake h = connect_request(c);

  lk__engine_connection_reset(c);
  c->output.sent = 0;
  if (!lk__buf_reserve(&c->output.bytes, LK_HANDSHAKE_LEN)) {
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__handshake_encode(&h, lk__buf_room(&c->output.bytes));
  c->output.bytes.end += LK_HANDSHAKE_LEN;
  c->connection.handshake_attempt = c->connection.attempt;
  lk__engine_connection_enter_phase(c, LK_PHASE_HANDSHAKE);
  c->connection.handshake_sent_ms = c->now;
  c->connection.oldest_handshake_ms =
      lk__earlier(c->connection.oldest_handshake_ms, c->now);
  lk__connect_timeout_begin_handshake(c);
  lk__client_wake(c);
}

bool lk__engine_connection_take_handshake(lk_client *c, lk_bytes frame,
                                          lk_handshake *welcome)
{
  /* lk__handshake_decode() compares the reply with the request. */
  *welcome = connect_request(c);
  switch (lk__handshake_decode(welcome, frame)) {
  case LK_WELCOME_SESSION: return true;
  case LK_WELCOME_EXPIRED:
    if (c->session.identity.id != 0)
      lk__session_expire(c, "the server does not know the session any more");
    else
      lk__engine_connection_end(c, LK_ERR_REFUSED, "refused a new session");
    break;
  case LK_WELCOME_READ_ONLY:
    lk__engine_connection_end(c, LK_ERR_NOT_READ_ONLY,
                              "the server is read-only: it has no quorum");
    break;
  case LK_WELCOME_BAD: lk__engine_connection_end_bad(c, NULL); break;
  }
  return false;
}

/* Each connection begins with the identities of lk_add_auth(), then setWatches.
 * false: there is no memory. */
static bool send_auth_and_watches(lk_client *c)
{
  return lk__auth_send_all(c) &&
         (c->watches.standing == 0 || lk__set_watches_send(c));
}

static void enter_live(lk_client *c, const lk_handshake *h)
{
  if (!h->read_only)
    c->session.identity = h->session;
  c->session.timeout_ms = h->timeout_ms;
  c->connection.read_only = h->read_only;
  lk__engine_connection_enter_phase(c, LK_PHASE_LIVE);
  c->connection.number = ++c->connection.count;
  c->connection.live_ms = c->now;
  lk__connect_timeout_note_handshake(c);
  c->move.quorum_only = false;
  c->connection.received_ms = c->now;
  lk__silence_begin(c);
  c->session.proven_ms = c->connection.handshake_sent_ms;
  if (c->connection.read_only)
    lk__probe_begin(c);
}

static lk_evidence handshake_evidence(const lk_handshake *h, bool resumed)
{
  if (h->read_only)
    return LK_EVIDENCE_NONE;
  return resumed ? LK_EVIDENCE_RESUMED : LK_EVIDENCE_NEW_SESSION;
}

static const char *session_kind(const lk_handshake *h, bool resumed)
{
  if (h->read_only)
    return "read-only";
  return resumed ? "resumed" : "new";
}

/* When the session was certainly alive, by a handshake that has succeeded. A
 * follower asks the leader whether the session exists, and keeps the question
 * by the session alone. So its reply can be the result of an earlier handshake
 * that the client gave up there (Learner.validateSession in ZooKeeper). */
static int64_t handshake_proves_ms(const lk_client *c, bool resumed)
{
  return resumed ? c->connection.oldest_handshake_ms
                 : c->connection.handshake_sent_ms;
}

/* Report the new connection before any request completes, so that each callback
 * finds the client in its new state. */
static void notify_live(lk_client *c, const lk_handshake *h, bool resumed)
{
  lk_reply reply = {.evidence = handshake_evidence(h, resumed),
                    .sent_ms = handshake_proves_ms(c, resumed),
                    .received_ms = c->now,
                    .connection = c->connection.number};

  c->connection.oldest_handshake_ms = LK_NEVER;
  /* The listeners that are notified of the reply find the new state, too. */
  c->session.state = h->read_only ? LK_STATE_READ_ONLY : LK_STATE_CONNECTED;
  lk__client_logf(c, LK_LOG_INFO, 0, "%s: %s session 0x%" PRIx64 ", %d ms",
                  c->connection.server, session_kind(h, resumed),
                  (uint64_t)h->session.id, (int)c->session.timeout_ms);
  lk__client_notify_reply(c, &reply);
  lk__client_enter_state(c, c->session.state, 0);
}

/* Enter LK_PHASE_LIVE and send identities and watches. `unsupported` gets the
 * watches that this server cannot register. false: there is no memory, and the
 * connection was ended before it was reported. */
static bool prepare_connection(lk_client *c, const lk_handshake *h,
                               lk_link *unsupported)
{
  bool resumed = c->session.identity.id != 0;

  lk__list_init(unsupported);
  if (request_is_unsupported(c, LK_OPCODE_SET_WATCHES2))
    lk__watches_take_staying(&c->watches, unsupported);
  enter_live(c, h);
  if (send_auth_and_watches(c))
    return true;
  /* lk__engine_connection_end() must not treat the connection as live. */
  lk__engine_connection_enter_phase(c, LK_PHASE_HANDSHAKE);
  /* A new session was never reported, so it must not be reported as expired. */
  if (!resumed)
    lk__session_clear_identity(c);
  lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
  return false;
}

void lk__engine_connection_establish(lk_client *c, const lk_handshake *h)
{
  bool resumed = c->session.identity.id != 0;
  lk_link unsupported;

  if (!prepare_connection(c, h, &unsupported)) {
    lk__watches_notify_ended(c, &unsupported, LK_ERR_UNIMPLEMENTED);
    return;
  }
  notify_live(c, h, resumed);
  bool requests_sent = lk__requests_send_waiting(c);

  /* Complete the requests that this server does not support. */
  lk__requests_finish(c);
  bool close_must_be_sent = c->close.begun && !c->close.sent;

  if (!requests_sent || (close_must_be_sent && !lk__close_send(c)))
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
  else
    lk__watches_notify_reregistered(c);
  lk__watches_notify_ended(c, &unsupported, LK_ERR_UNIMPLEMENTED);
}

/* ---- the live connection ------------------------------------------------- */

/* A faulty server may close each connection after the handshake or after the
 * first requests. So a connection counts as working only after a third of the
 * session timeout, at a reply; an idle client has sent a ping by then. */
void lk__engine_connection_note_reply(lk_client *c)
{
  if (c->now - c->connection.live_ms < c->session.timeout_ms / 3)
    return;
  c->connection.failed_rounds = 0;
  c->connection.passes = 0;
  lk__hosts_end_round(&c->hosts);
}

enum {
  LENGTH_FIELD = 4,           /* bytes */
  PING_LEN = LENGTH_FIELD + 8 /* a request header of two ints */
};

/* When the connection is ended because of silence, unless bytes arrive
 * before. */
static int64_t silence_end(const lk_client *c)
{
  return c->connection.received_ms + (int64_t)c->session.timeout_ms * 2 / 3;
}

/* When the next ping is due. */
static int64_t ping_due(const lk_client *c)
{
  int64_t third = c->session.timeout_ms / 3, newest_ping_ms;

  if (c->pings.sent_ms.count == 0)
    return c->output.all_sent_ms + third;
  newest_ping_ms = *(const int64_t *)lk__ring_at(&c->pings.sent_ms,
                                                 c->pings.sent_ms.count - 1);
  bool newest_was_sent_in_full = c->pings.end <= c->output.sent;
  bool bytes_arrive = c->connection.received_ms > newest_ping_ms;

  /* While the server sends nothing, at most one ping is outstanding. */
  if (!newest_was_sent_in_full || !bytes_arrive)
    return LK_NEVER;
  /* The reply to the outstanding ping comes behind the bytes that arrive. They
   * may be a long reply on a slow connection, which takes longer than the
   * session timeout. So another ping follows, to extend the session. */
  return lk__later(c->output.all_sent_ms, newest_ping_ms) + third;
}

/* Returns 0 or LK_ERR_NO_MEMORY. */
static int send_ping(lk_client *c)
{
  lk_writer w;

  if (!lk__ring_reserve(&c->pings.sent_ms) ||
      !lk__buf_reserve(&c->output.bytes, PING_LEN))
    return LK_ERR_NO_MEMORY;
  lk__writer_init(&w, lk__buf_room(&c->output.bytes), PING_LEN);
  lk__writer_int(&w, PING_LEN - LENGTH_FIELD);
  lk__writer_int(&w, LK_XID_PING);
  lk__writer_int(&w, LK_OPCODE_PING);
  c->output.bytes.end += PING_LEN;
  c->pings.end = c->output.sent + lk__buf_len(&c->output.bytes);
  if (c->pings.sent_ms.count > 0)
    c->pings.overlapping_ping_ms = c->now;
  *(int64_t *)lk__ring_push(&c->pings.sent_ms) = c->now;
  lk__client_wake(c);
  return 0;
}

int64_t lk__pings_deadline(const lk_client *c)
{
  return lk__earlier(silence_end(c), ping_due(c));
}

int lk__pings_run(lk_client *c)
{
  if (c->now >= silence_end(c))
    return LK_ERR_CONNECTION_LOSS;
  return c->now >= ping_due(c) ? send_ping(c) : 0;
}

/* ---- the end of a connection --------------------------------------------- */

/* Bytes of memory of the output that are kept between connections. */
enum { MAX_KEPT_AFTER_BREAK = 64 * 1024 };

void lk__engine_connection_reset(lk_client *c)
{
  lk__buf_consume(&c->output.bytes, lk__buf_len(&c->output.bytes));
  lk__buf_trim(&c->output.bytes, MAX_KEPT_AFTER_BREAK);
  lk__frames_reset(&c->input.frames);
  c->connection.number = 0;
  c->move.wanted = false;
  c->output.limit = UINT64_MAX;
  while (c->pings.sent_ms.count > 0)
    lk__ring_pop(&c->pings.sent_ms);
  c->rejected.op = 0;
  c->set_watches.unanswered = 0;
  c->set_watches.throttled = false;
  c->set_watches.tries = 0;
  c->set_watches.retry_ms = LK_NEVER;
  c->watches.set_watches_under_way = false;
  c->connection.input_lost = false;
  c->auth.next_reply = NULL;
  c->connection.read_only = false;
  lk__probe_stop(c);
  lk__sasl_drop(c);
}

void lk__engine_connection_note_error(lk_client *c, int level, int err,
                                      const char *why)
{
  c->last_error.err = err;
  snprintf(c->last_error.text, sizeof c->last_error.text, "%s: %s",
           c->connection.server, why == NULL ? lk_error_text(err) : why);
  lk__client_logf(c, level, err, "%s", c->last_error.text);
}

/* Every server has refused the client. If there is a session, give_up_ms will
 * end it. Without a session, last_zxid comes from a read-only server, and the
 * client forgets it so that the other servers accept the client. */
static void report_refusals(lk_client *c)
{
  bool has_session = c->session.identity.id != 0;

  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_REFUSED,
                  "no server takes this %s: they may have reached "
                  "maxClientCnxns, or have lost what it has seen (zxid "
                  "0x%" PRIx64 ")%s",
                  has_session ? "session back" : "client",
                  (uint64_t)c->session.last_zxid,
                  has_session ? "" : ", which it forgets");
  if (!has_session)
    c->session.last_zxid = 0;
}

/* A server closes the connection of a client that has seen a larger zxid than
 * the server. If all servers do so, their data were restored from a backup or
 * deleted. That state does not end by itself, so it is logged. Servers also
 * close connections during an election, but for a shorter time. */
static void end_host_round(lk_client *c)
{
  bool refused_for_long =
      c->connection.refused_round &&
      c->now - c->connection.refused_since_ms >= c->session.timeout_ms / 2;

  if (refused_for_long && c->session.last_zxid > 0)
    report_refusals(c);
  /* Until an attempt ends with another error than LK_ERR_REFUSED. */
  c->connection.refused_round = true;
  c->move.quorum_only = false;
  c->connection.failed_rounds++;
}

/* A connection or an attempt has ended; `refused`: with LK_ERR_REFUSED. */
static void note_refusal(lk_client *c, bool refused)
{
  if (!refused) {
    c->connection.refused_round = false;
    c->connection.refused_since_ms = LK_NEVER;
  } else if (c->connection.refused_since_ms == LK_NEVER) {
    c->connection.refused_since_ms = c->now;
  }
}

static int64_t pause_before_next_round(lk_client *c)
{
  unsigned doublings =
      c->lease.has_holder ? LK_HOLDER_PAUSE_DOUBLINGS : LK_PAUSE_DOUBLINGS;

  return lk__hosts_pause_ms(c->session.timeout_ms, c->connection.failed_rounds,
                            doublings, c->hooks.random, c->hooks.arg);
}

/* Try the next address or server, at once or after a pause. */
static void try_next_endpoint(lk_client *c, bool was_live)
{
  bool round_is_over = lk__hosts_next(&c->hosts);

  if (lk__silence_avoids_server(c))
    round_is_over = lk__hosts_next(&c->hosts) || round_is_over;
  if (round_is_over)
    end_host_round(c);
  if (round_is_over && !was_live)
    c->connection.passes++;
  int64_t pause = round_is_over || was_live ? pause_before_next_round(c) : 0;

  c->connection.retry_ms = c->now + pause;
  if (pause == 0)
    lk__engine_connection_begin(c);
}

/* Leave a silent server for a holder, without a pause. The other addresses of
 * its name may lead to the same server, so another name is tried if there is
 * one. */
static void try_next_server(lk_client *c)
{
  bool round_is_over = c->hosts.count > 1 ? lk__hosts_next_server(&c->hosts)
                                          : lk__hosts_next(&c->hosts);

  if (round_is_over)
    end_host_round(c);
  lk__engine_connection_begin(c);
}

/* The zxid up to which watches have got their events. A read-only server may
 * have shown transactions that are undone later, while the transactions that
 * replace them have smaller zxids. So nothing counts as reported then. */
static int64_t reported_until(const lk_client *c)
{
  return c->connection.read_only ? 0 : c->session.last_zxid;
}

/* All fields of the client change before lk__client_enter_state() invokes the
 * first callback. The requests and watches that end with the connection were
 * set aside before, and their callbacks are invoked after those of listeners.
 */
void lk__engine_connection_end(lk_client *c, int err, const char *why)
{
  bool was_live = c->connection.phase == LK_PHASE_LIVE;
  /* lk__engine_connection_reset() clears this. */
  bool move_wanted = c->move.wanted;
  lk_link ended;

  lk__engine_connection_note_error(
      c, err == LK_ERR_TLS ? LK_LOG_WARNING : LK_LOG_INFO, err, why);
  bool holder_waits = was_live && !move_wanted && lk__silence_note_loss(c, err);

  note_refusal(c, err == LK_ERR_REFUSED);
  lk__engine_connection_enter_phase(c, LK_PHASE_PAUSE);
  if (was_live)
    lk__watches_mark_missing(&c->watches, reported_until(c));
  lk__engine_connection_reset(c);
  int close_outcome = lk__close_outcome(c, LK_ERR_IN_DOUBT);

  c->close.lost = close_outcome == LK_ERR_IN_DOUBT;
  c->close.sent = false;
  if (move_wanted)
    lk__engine_connection_begin(c);
  else if (holder_waits)
    try_next_server(c);
  else
    try_next_endpoint(c, was_live);
  lk__client_wake(c);
  if (!was_live)
    return;
  lk__list_init(&ended);
  lk__watches_take_disconnected(&c->watches, &ended);
  lk__requests_detach_sent(c);
  lk__client_enter_state(c, LK_STATE_SUSPENDED, err);
  lk__requests_finish(c);
  lk__watches_notify_ended(c, &ended, LK_ERR_CONNECTION_LOSS);
}

void lk__engine_connection_end_bad(lk_client *c, const char *why)
{
  bool is_first_reply = c->connection.phase == LK_PHASE_HANDSHAKE;

  lk__engine_connection_end(
      c, LK_ERR_PROTOCOL,
      is_first_reply ? "malformed reply to the connect request" : why);
}

/* ---- another list of servers --------------------------------------------- */

void lk__engine_connection_set_hosts(lk_client *c, lk_hosts *fresh)
{
  bool another_server_in_turn =
      lk__hosts_replace(&c->hosts, fresh, c->hooks.random, c->hooks.arg);

  c->silence.left_server = SIZE_MAX;
  if (!another_server_in_turn) {
    if (c->connection.read_only && !c->move.wanted)
      lk__probe_begin(c); /* search in the new list */
    return;
  }
  switch (c->connection.phase) {
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL:
    lk__engine_connection_reset(c);
    lk__engine_connection_begin(c);
    break;
  case LK_PHASE_LIVE: lk__move_begin(c); break;
  case LK_PHASE_PAUSE:
  case LK_PHASE_ENDED: break;
  }
}

/* ---- the session without a connection ------------------------------------ */

int64_t lk__session_give_up_at(const lk_client *c)
{
  if (c->session.identity.id == 0 || c->connection.phase == LK_PHASE_LIVE ||
      c->connection.phase == LK_PHASE_ENDED || c->options.give_up_ms < 0)
    return LK_NEVER;
  int64_t default_ms = (int64_t)c->session.timeout_ms * 4 / 3;
  int64_t ms = c->options.give_up_ms > 0 ? c->options.give_up_ms : default_ms;

  return lk__later(c->session.proven_ms, c->pings.overlapping_ping_ms) + ms;
}

void lk__session_clear_identity(lk_client *c)
{
  memset(&c->session.identity, 0, sizeof c->session.identity);
  c->session.timeout_ms = c->options.timeout_ms;
}
