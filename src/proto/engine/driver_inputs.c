/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The driver's side of a client: <latchkey/driver.h>. */

#include <stdio.h>

#include <latchkey/client.h>

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/connection.h"
#include "proto/engine/hosts.h"
#include "proto/engine/replies.h"
#include "proto/engine/requests.h"
#include "proto/engine/sasl.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/session.h"
#include "proto/engine/set_watches.h"

/* ---- what is due, and when ----------------------------------------------- */

/* The parts of the client say what is due. Only this file ends connections and
 * the client for them, so that no part depends on the session.
 *
 * This runs for each input. The conditions of rare work are tested here, before
 * a function of the part is called: the calls would cost a single read 4 % more
 * instructions. */

enum { TEXT_SIZE = 96 };

static void leave_rejecting_server(lk_client *c)
{
  char why[TEXT_SIZE];

  lk__rejected_text(c, why, sizeof why);
  lk__engine_connection_end(c, LK_ERR_UNIMPLEMENTED, why);
}

static void run_pings(lk_client *c)
{
  int err = lk__pings_run(c);

  if (err != 0)
    lk__engine_connection_end(
        c, err,
        err == LK_ERR_CONNECTION_LOSS
            ? "no bytes received for two thirds of the session timeout"
            : NULL);
}

/* At most one of these ends the connection, and nothing follows it. */
static void run_live(lk_client *c)
{
  if (c->now >= c->set_watches.retry_ms && !lk__set_watches_run_retry(c))
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
  else if (c->rejected.op != 0 && c->now >= lk__rejected_deadline(c))
    leave_rejecting_server(c);
  else if (c->move.wanted && lk__move_run(c))
    lk__engine_connection_end(c, 0, lk__move_text(c));
  else {
    if (c->now >= c->probe.due_ms)
      lk__probe_run(c);
    run_pings(c);
  }
}

static int64_t live_deadline(const lk_client *c)
{
  int64_t at = lk__earlier(c->probe.due_ms, c->set_watches.retry_ms);

  if (c->move.wanted)
    at = lk__earlier(at, lk__move_deadline(c));
  if (c->rejected.op != 0)
    at = lk__earlier(at, lk__rejected_deadline(c));
  if (!lk__list_empty(&c->requests.sent))
    at = lk__earlier(at, lk__silence_deadline(c));
  return lk__earlier(at, lk__pings_deadline(c));
}

static void time_out_attempt(lk_client *c)
{
  char why[TEXT_SIZE];

  lk__connect_timeout_text(c, why, sizeof why);
  lk__engine_connection_end(c, lk__connect_timeout_err(c), why);
}

/* Do what is due in the present phase. This runs only at depth 0, so a
 * connection whose input was lost inside a callback can be ended now. The input
 * was dropped, so the replies in it are lost. */
static void run_phase(lk_client *c)
{
  if (c->connection.input_lost)
    lk__engine_connection_end(c, LK_ERR_CONNECTION_LOSS,
                              "input from inside a callback");
  switch (c->connection.phase) {
  case LK_PHASE_PAUSE:
    if (c->now >= c->connection.retry_ms)
      lk__engine_connection_begin(c);
    break;
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL:
    if (c->now >= c->connection.attempt_end_ms)
      time_out_attempt(c);
    break;
  case LK_PHASE_LIVE: run_live(c); break;
  case LK_PHASE_ENDED: break;
  }
}

/* Do everything that is due at the client's clock. */
static void client_run_due(lk_client *c)
{
  if (c->connection.attempt_failed) {
    c->connection.attempt_failed = false;
    lk__client_notify_attempt(c);
  }
  if (c->timers.root != NULL)
    lk__timers_run(c);
  if (c->now >= lk__requests_deadline(&c->requests))
    lk__requests_time_out(c);
  lk__watches_report_ended(c, &c->watches);
  if (c->close.begun && lk__close_is_due(c))
    lk__session_closed(c, lk__close_outcome(c, LK_ERR_DEADLINE));
  if (c->now >= lk__session_give_up_at(c))
    lk__session_give_up(c);
  run_phase(c);
}

/* Leave the server if it does not reply. Only ticks call this: another input
   may bring the bytes of a reply. */
static void client_leave_silent_server(lk_client *c)
{
  char why[TEXT_SIZE];

  if (c->connection.phase != LK_PHASE_LIVE ||
      lk__list_empty(&c->requests.sent) || !lk__silence_run(c))
    return;
  lk__silence_text(c, why, sizeof why);
  lk__engine_connection_end(c, LK_ERR_CONNECTION_LOSS, why);
}

/* When client_run_due() or client_leave_silent_server() next has something to
 * do; LK_NEVER: nothing is due until another input comes. */
static int64_t client_next_deadline(const lk_client *c)
{
  int64_t at = lk__earlier(lk__requests_deadline(&c->requests),
                           lk__session_give_up_at(c));

  if (!lk__list_empty(&c->watches.ended) || c->connection.attempt_failed)
    return c->now;
  at = lk__earlier(at, lk__timers_deadline(c));
  if (c->close.begun)
    at = lk__earlier(at, c->close.end_ms);
  /* Inside a callback nothing can be done yet: see run_phase(). */
  if ((c->connection.input_lost || c->nesting.free_wanted) &&
      c->nesting.depth == 0)
    return c->now;
  switch (c->connection.phase) {
  case LK_PHASE_PAUSE: return lk__earlier(at, c->connection.retry_ms);
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL: return lk__earlier(at, c->connection.attempt_end_ms);
  case LK_PHASE_LIVE: return lk__earlier(at, live_deadline(c));
  case LK_PHASE_ENDED: break;
  }
  return at;
}

/* ---- the beginning of an input ------------------------------------------- */

/* Whether the client has a connection or an attempt at one. */
static bool has_attempt(const lk_client *c)
{
  return c->connection.phase != LK_PHASE_PAUSE &&
         c->connection.phase != LK_PHASE_ENDED;
}

static bool is_present_attempt(const lk_client *c, uint64_t attempt)
{
  return c->connection.attempt == attempt && !c->nesting.free_wanted &&
         has_attempt(c);
}

/* An input from inside a callback is lost, and the driver does not repeat it.
 * So the next tick ends the connection. It is due as soon as the outermost call
 * has ended: see client_next_deadline(). */
static void note_lost_input(lk_client *c, uint64_t attempt)
{
  if (!is_present_attempt(c, attempt))
    return;
  c->connection.input_lost = true;
  lk__client_wake(c);
}

/* Begin an input for `attempt`, and first do the work that is due. false: the
 * input must be dropped, since it belongs to an older attempt or comes from
 * inside a callback. lk__client_leave() follows in any case. */
static bool begin_input(lk_client *c, uint64_t attempt)
{
  bool outermost = c->nesting.depth == 0;

  lk__client_enter(c);
  if (outermost)
    client_run_due(c);
  else
    note_lost_input(c, attempt);
  return outermost && is_present_attempt(c, attempt);
}

/* Begin an input as begin_input() does, but accept it from the hook `wake`,
 * too. No request may complete inside `wake`. Therefore the work that is due is
 * left to the next input, and only LK_PHASE_CONNECTING, in which an input
 * cannot end a live connection, accepts the input. */
static bool begin_input_also_in_wake(lk_client *c, uint64_t attempt)
{
  if (!c->nesting.waking)
    return begin_input(c, attempt);
  lk__client_enter(c);
  c->now = c->hooks.now(c->hooks.arg);
  return is_present_attempt(c, attempt) &&
         c->connection.phase == LK_PHASE_CONNECTING;
}

/* ---- connection attempts ------------------------------------------------- */

const lk_want *lk_client_want(lk_client *c)
{
  const lk_host *h = lk__hosts_current(&c->hosts);
  bool is_connecting = c->connection.phase == LK_PHASE_CONNECTING;

  c->want =
      (lk_want){.size = sizeof c->want,
                .attempt = has_attempt(c) ? c->connection.attempt : 0,
                .host = h->name,
                .port = h->port,
                .address_index = c->hosts.address_index,
                .tcp_ms = is_connecting ? lk__connect_timeout_tcp_ms(c) : 0};
  return &c->want;
}

void lk_client_resolved(lk_client *c, uint64_t attempt, uint32_t count)
{
  if (begin_input_also_in_wake(c, attempt) &&
      c->connection.phase == LK_PHASE_CONNECTING && count > 0) {
    lk__hosts_note_addresses(&c->hosts, count);
    lk__connect_timeout_note_addresses(c);
  }
  lk__client_leave(c);
}

static void set_address(char *to, const char *address)
{
  snprintf(to, LK_ADDRESS_SIZE, "%s", address == NULL ? "" : address);
}

void lk_client_note_addresses(lk_client *c, uint64_t attempt, const char *local,
                              const char *peer)
{
  if (!is_present_attempt(c, attempt) ||
      c->connection.phase != LK_PHASE_CONNECTING)
    return;
  set_address(c->connection.local, local);
  set_address(c->connection.peer, peer);
}

static void warn_unverified_tls(const lk_client *c)
{
  if (c->tls != NULL && (c->tls->any_certificate || c->tls->any_name))
    lk__client_logf(
        c, LK_LOG_WARNING, 0, "%s: TLS: the server's %s is not verified",
        c->connection.server, c->tls->any_certificate ? "certificate" : "name");
}

void lk_client_connected(lk_client *c, uint64_t attempt)
{
  if (begin_input_also_in_wake(c, attempt) &&
      c->connection.phase == LK_PHASE_CONNECTING) {
    warn_unverified_tls(c);
    lk__session_send_handshake(c);
  }
  lk__client_leave(c);
}

static void fail_attempt(lk_client *c, uint64_t attempt, int err,
                         lk_tls_cause cause, const char *why)
{
  if (begin_input_also_in_wake(c, attempt)) {
    c->last_error.tls_cause = cause;
    if (err == 0)
      err = LK_ERR_CONNECTION_LOSS;
    if (err == LK_ERR_CONNECTION_LOSS &&
        c->connection.phase == LK_PHASE_HANDSHAKE) {
      /* The text of the error says more than "Broken pipe". */
      err = LK_ERR_REFUSED;
      why = NULL;
    }
    if (why == NULL && err == LK_ERR_CONNECTION_LOSS)
      why = c->connection.phase == LK_PHASE_SASL
                ? "the server closed the connection during the SASL exchange"
                : "the server closed the connection";
    lk__engine_connection_end(c, err, why);
  } else if (c->nesting.waking) {
    /* begin_input() does this for other callbacks. */
    note_lost_input(c, attempt);
  }
  lk__client_leave(c);
}

void lk_client_failed(lk_client *c, uint64_t attempt, int err, const char *why)
{
  fail_attempt(c, attempt, err, LK_TLS_OTHER, why);
}

void lk_client_failed_tls(lk_client *c, uint64_t attempt, lk_tls_cause cause,
                          const char *why)
{
  fail_attempt(c, attempt, LK_ERR_TLS, cause, why);
}

/* ---- bytes received ------------------------------------------------------ */

static void take_handshake(lk_client *c, lk_bytes frame)
{
  lk_handshake welcome;

  if (!lk__session_take_handshake(c, frame, &welcome))
    return;
  if (c->sasl != NULL)
    lk__sasl_begin(c, &welcome);
  else
    lk__session_establish(c, &welcome);
}

static void take_frame(lk_client *c, lk_bytes frame)
{
  if (c->connection.phase == LK_PHASE_LIVE)
    lk__reply_take(c, frame);
  else if (c->connection.phase == LK_PHASE_HANDSHAKE)
    take_handshake(c, frame);
  else
    lk__sasl_take(c, frame);
}

/* Whether the connection of the bytes that are being processed still exists. A
 * frame or a callback can have ended it. */
static bool is_receiving(const lk_client *c, uint64_t attempt)
{
  return c->connection.attempt == attempt && !c->nesting.free_wanted &&
         (c->connection.phase == LK_PHASE_LIVE ||
          c->connection.phase == LK_PHASE_HANDSHAKE ||
          c->connection.phase == LK_PHASE_SASL);
}

static void receive_frames(lk_client *c, uint64_t attempt, lk_bytes bytes)
{
  while (bytes.len > 0 && is_receiving(c, attempt)) {
    lk_bytes frame;

    switch (lk__frame_next(&c->input.frames, &bytes, &frame)) {
    case LK_FRAME_NONE:
      lk__silence_note_bytes(c, lk__buf_len(&c->input.frames.partial));
      return;
    case LK_FRAME_WHOLE:
      take_frame(c, frame);
      lk__watches_report_ended(c, &c->watches);
      break;
    case LK_FRAME_BAD:
      lk__engine_connection_end_bad(c, "frame of negative length");
      break;
    case LK_FRAME_TOO_BIG:
      lk__request_forbid_retry(c, LK_ERR_REPLY_TOO_BIG);
      lk__engine_connection_end_bad(
          c, "the reply is larger than the client accepts");
      break;
    case LK_FRAME_NO_MEMORY:
      lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
      break;
    }
  }
}

/* The memory of a large reply is kept for the next one, as long as a ping
 * interval. */
static void trim_input(lk_client *c)
{
  bool is_unused = c->now - c->input.large_ms >= c->session.timeout_ms / 3;

  if (c->input.frames.large_was_returned)
    c->input.large_ms = c->now;
  else if (is_unused)
    lk__frames_trim(&c->input.frames);
  c->input.frames.large_was_returned = false;
}

void *lk_client_receive_buffer(lk_client *c, uint64_t attempt, size_t least,
                               size_t *size)
{
  return is_receiving(c, attempt)
             ? lk__frame_room(&c->input.frames, least, size)
             : NULL;
}

void lk_client_received(lk_client *c, uint64_t attempt, const void *bytes,
                        size_t len)
{
  if (begin_input(c, attempt)) {
    c->connection.received_ms = c->now;
    receive_frames(c, attempt, lk_bytes_of(bytes, len));
    if (c->input.frames.partial.cap > LK_FRAMES_KEPT)
      trim_input(c);
  }
  lk__client_leave(c);
}

/* ---- bytes to be sent ---------------------------------------------------- */

/* Bytes of memory of the output that are kept once all is sent. */
enum { MAX_KEPT_WHEN_SENT = 1024 * 1024 };

lk_bytes lk_client_pending(lk_client *c)
{
  size_t len = lk__buf_len(&c->output.bytes);
  uint64_t allowed = c->output.limit - c->output.sent;

  if (allowed < len)
    len = (size_t)allowed;
  return lk_bytes_of(len == 0 ? NULL : lk__buf_bytes(&c->output.bytes), len);
}

void lk_client_sent(lk_client *c, uint64_t attempt, size_t len)
{
  if (attempt != c->connection.attempt || len > lk__buf_len(&c->output.bytes))
    return;
  lk__buf_consume(&c->output.bytes, len);
  c->output.sent += len;
  if (len > 0)
    c->output.sent_unstamped = true;
  c->now_stale = true;
  if (lk__buf_len(&c->output.bytes) > 0)
    return;
  /* c->now may be behind the clock: the next ping is then early, not late. */
  c->output.all_sent_ms = c->now;
  lk__buf_trim(&c->output.bytes, MAX_KEPT_WHEN_SENT);
}

/* ---- probes -------------------------------------------------------------- */

const lk_want *lk_client_want_probe(lk_client *c)
{
  c->probe.want = lk__probe_want(c);
  return &c->probe.want;
}

void lk_client_probed(lk_client *c, uint64_t probe, const void *reply,
                      size_t len)
{
  bool outermost = c->nesting.depth == 0;

  lk__client_enter(c);
  if (outermost)
    client_run_due(c);
  if (outermost && probe != 0 && c->probe.number == probe &&
      !c->nesting.free_wanted) {
    bool has_quorum = len == 2 && memcmp(reply, "rw", 2) == 0;

    if (has_quorum) {
      lk__probe_select(c);
      lk__move_begin(c);
    } else {
      lk__probe_next_server(c);
    }
    lk__client_wake(c);
  }
  lk__client_leave(c);
}

/* ---- time ---------------------------------------------------------------- */

int64_t lk_client_deadline(const lk_client *c)
{
  return client_next_deadline(c);
}

void lk_client_tick(lk_client *c)
{
  bool outermost = c->nesting.depth == 0;

  lk__client_enter(c);
  if (outermost) {
    client_run_due(c);
    client_leave_silent_server(c);
  }
  lk__client_leave(c);
}
