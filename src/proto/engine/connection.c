/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/connection.h"

#include <inttypes.h>
#include <stdio.h>

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/hosts.h"
#include "proto/engine/requests.h"
#include "proto/engine/sasl.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/session.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

/* The addresses are known from the end of LK_PHASE_CONNECTING on. */
void lk__engine_connection_enter_phase(lk_client *c, lk_phase phase)
{
  c->connection.phase = phase;
  if (phase == LK_PHASE_PAUSE || phase == LK_PHASE_CONNECTING ||
      phase == LK_PHASE_ENDED) {
    c->connection.peer[0] = '\0';
    c->connection.local[0] = '\0';
  }
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

/* Bytes of memory of the output that are kept while it is not used: between
 * connections, and when a client pings. */
enum { MAX_OUTPUT_KEPT = 64 * 1024 };

/* Returns 0 or LK_ERR_NO_MEMORY. */
static int send_ping(lk_client *c)
{
  lk_writer w;

  /* Nothing was sent for a ping interval. */
  if (lk__buf_len(&c->output.bytes) == 0)
    lk__buf_trim(&c->output.bytes, MAX_OUTPUT_KEPT);
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
  if (c->now < ping_due(c))
    return 0;
  lk__requests_send_known_read(c);
  return send_ping(c);
}

/* ---- the end of a connection --------------------------------------------- */

void lk__engine_connection_reset(lk_client *c)
{
  lk__buf_consume(&c->output.bytes, lk__buf_len(&c->output.bytes));
  lk__buf_trim(&c->output.bytes, MAX_OUTPUT_KEPT);
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

void lk__engine_connection_note_error(lk_client *c, lk_log_level level, int err,
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

/* The other addresses of a name may lead to the same server, so another name is
 * next if there is one. Returns whether the round is over. */
static bool select_next_server(lk_client *c)
{
  return c->hosts.count > 1 ? lk__hosts_next_server(&c->hosts)
                            : lk__hosts_next(&c->hosts);
}

/* Leave a silent server for a holder, without a pause. */
static void try_next_server(lk_client *c)
{
  bool round_is_over = select_next_server(c);

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
  if (!was_live) {
    c->connection.attempt_failed = lk__client_attempts_are_reported(c);
    lk__requests_attempt_failed(c);
  }
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

/* ---- moves to another server --------------------------------------------- */

int lk__engine_connection_leave_server(lk_client *c)
{
  if (c->connection.phase != LK_PHASE_LIVE ||
      lk__hosts_count_endpoints(&c->hosts) < 2)
    return LK_ERR_STATE;
  if (c->move.wanted) /* it leaves already */
    return 0;
  (void)select_next_server(c);
  lk__move_begin(c);
  return 0;
}

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
