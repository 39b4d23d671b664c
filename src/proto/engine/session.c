/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/timing.h"
#include "proto/engine/watch_events.h"
#include "proto/wire/opcode.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEEP = 64 * 1024 };

/* ---- looking for a server ---------------------------------------------- */

void lk__session_connect(lk_client *c)
{
  const lk_host *h = lk__hosts_current(&c->hosts);
  bool literal6 = strchr(h->name, ':') != NULL;

  c->connection.attempt++;
  c->connection.phase = LK_PHASE_CONNECTING;
  lk__hosts_use(&c->hosts);
  lk__timing_begin_attempt(c);
  snprintf(c->connection.server, sizeof c->connection.server, "%s%s%s:%u",
           literal6 ? "[" : "", h->name, literal6 ? "]" : "",
           (unsigned)h->port);
  lk__client_wake(c);
}

static void drop_connection(lk_client *c)
{
  lk__buf_consume(&c->output.bytes, lk__buf_len(&c->output.bytes));
  lk__buf_trim(&c->output.bytes, KEEP);
  lk__frames_reset(&c->input.frames);
  c->connection.number = 0;
  c->move.wanted = false;
  c->output.limit = UINT64_MAX;
  while (c->pings.sent_ms.count > 0)
    lk__ring_pop(&c->pings.sent_ms);
  c->rejected.op = 0;
  c->reregistration.unanswered = 0;
  c->reregistration.throttled = false;
  c->reregistration.tries = 0;
  c->reregistration.retry_ms = LK_NEVER;
  c->watches.on_its_way = false;
  c->reregistration.failed = false;
  c->connection.input_lost = false;
  c->auth.next_reply = NULL;
  c->connection.read_only = false;
  lk__probe_stop(c);
  lk__sasl_drop(c);
}

static void set_trouble(lk_client *c, int level, int err, const char *why)
{
  c->last_error.err = err;
  snprintf(c->last_error.text, sizeof c->last_error.text, "%s: %s",
           c->connection.server, why == NULL ? lk_error_text(err) : why);
  lk__client_logf(c, level, err, "%s", c->last_error.text);
}

/* A session that is refused is given up some time, and forgets. Where there is
 * none, what a server without a quorum has shown is forgotten now. */
static void report_refusals(lk_client *c)
{
  bool session = c->session.identity.id != 0;

  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_REFUSED,
                  "no server takes this %s: they may have lost what it has "
                  "seen (zxid 0x%" PRIx64 ")%s",
                  session ? "session back" : "client",
                  (uint64_t)c->session.last_zxid,
                  session ? "" : ", which it forgets");
  if (!session)
    c->session.last_zxid = 0;
}

/* If every server hangs up on a session that has seen more than they have, they
 * were restored or wiped, and it will not end by itself: say so. While they
 * elect a leader they hang up as well, for a shorter time. */
static void end_round(lk_client *c)
{
  bool long_since =
      c->now - c->connection.received_ms >= c->session.timeout_ms / 2;

  if (c->connection.refused_round && c->session.last_zxid > 0 && long_since)
    report_refusals(c);
  c->connection.refused_round = true;
  c->move.quorum_only = false;
  c->connection.failed_rounds++;
}

/* Try the next address or server, at once or after a pause. */
static void go_on(lk_client *c, bool was_live)
{
  bool round = lk__hosts_next(&c->hosts);

  if (round)
    end_round(c);
  int64_t pause = round || was_live ? lk__timing_pause(c) : 0;

  c->connection.retry_ms = c->now + pause;
  if (pause == 0)
    lk__session_connect(c);
}

/* What the next connection need not tell watches of. A server without a quorum
 * may have shown what never came to be, and is undone with zxids below. */
static int64_t known_until(const lk_client *c)
{
  return c->connection.read_only ? 0 : c->session.last_zxid;
}

void lk__session_break(lk_client *c, int err, const char *why)
{
  bool was_live = c->connection.phase == LK_PHASE_LIVE;
  bool moves = c->move.wanted;
  lk_link fired;

  set_trouble(c, err == LK_ERR_TLS ? LK_LOG_WARNING : LK_LOG_INFO, err, why);
  c->connection.refused_round =
      c->connection.refused_round && err == LK_ERR_REFUSED;
  c->connection.phase = LK_PHASE_PAUSE;
  if (was_live)
    lk__watches_mark_missing(&c->watches, known_until(c));
  drop_connection(c);
  c->close.lost =
      lk__request_close_outcome(c, LK_ERR_IN_DOUBT) == LK_ERR_IN_DOUBT;
  c->close.sent = false;
  if (moves)
    lk__session_connect(c);
  else
    go_on(c, was_live);
  lk__client_wake(c);
  if (!was_live)
    return;
  lk__list_init(&fired);
  lk__watches_take(&c->watches, false, &fired);
  lk__requests_detach(c, false);
  lk__client_enter_state(c, LK_STATE_SUSPENDED, err);
  lk__requests_finish(c, 0);
  lk__watches_notify_ended(c, &fired, LK_ERR_CONNECTION_LOSS);
}

/* ---- another server, or list of them ----------------------------------- */

void lk__session_move(lk_client *c)
{
  if (!c->move.wanted)
    c->move.since_ms = c->now;
  c->move.wanted = true; /* nobody is told of it in the middle of a call */
  lk__probe_stop(c);
  lk__client_wake(c);
}

void lk__session_set_hosts(lk_client *c, lk_hosts *fresh)
{
  bool another =
      lk__hosts_replace(&c->hosts, fresh, c->hooks.random, c->hooks.arg);

  if (!another) {
    if (c->connection.read_only && !c->move.wanted)
      lk__probe_begin(c); /* of the servers that there are now */
    return;
  }
  switch (c->connection.phase) {
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL:
    drop_connection(c);
    lk__session_connect(c);
    break;
  case LK_PHASE_LIVE: lk__session_move(c); break;
  case LK_PHASE_PAUSE:
  case LK_PHASE_ENDED: break;
  }
}

static void clear_session(lk_client *c)
{
  memset(&c->session.identity, 0, sizeof c->session.identity);
  c->session.timeout_ms = c->options.timeout_ms;
}

static void forget_session(lk_client *c)
{
  drop_connection(c);
  clear_session(c);
  c->session.last_zxid = 0;
  c->session.last_xid = 0;
}

/* ---- handshake --------------------------------------------------------- */

/* A server without a quorum that is asked for a session takes one that it has
 * never heard of for expired, or for its own. It is asked for none. */
static lk_handshake greeting(const lk_client *c)
{
  bool any = c->options.read_only && !c->move.quorum_only &&
             c->session.identity.id == 0;

  return (lk_handshake){.last_zxid = c->session.last_zxid,
                        .timeout_ms = c->options.timeout_ms,
                        .session = c->session.identity,
                        .read_only = any};
}

void lk__session_send_handshake(lk_client *c)
{
  lk_handshake h = greeting(c);

  drop_connection(c);
  c->output.sent = 0;
  if (!lk__buf_reserve(&c->output.bytes, LK_HANDSHAKE_LEN)) {
    lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__handshake_encode(&h, lk__buf_room(&c->output.bytes));
  c->output.bytes.end += LK_HANDSHAKE_LEN;
  c->connection.handshake_attempt = c->connection.attempt;
  c->connection.phase = LK_PHASE_HANDSHAKE;
  c->connection.handshake_sent_ms = c->now;
  lk__client_wake(c);
}

bool lk__session_reregister(lk_client *c)
{
  int count = lk__set_watches_encode(&c->watches, c->session.last_zxid,
                                     c->options.send_limit, &c->output.bytes);

  if (count < 0)
    return false;
  c->reregistration.sent = c->reregistration.unanswered = (size_t)count;
  c->reregistration.throttled = false;
  return true;
}

void lk__session_reregistered(lk_client *c, bool missing)
{
  if (missing)
    lk__timing_reregister_later(c);
  else
    c->reregistration.tries = 0;
}

/* What belongs to a connection goes first: identities, then watches. */
static bool restore(lk_client *c)
{
  return lk__auth_send_all(c) &&
         (c->watches.standing == 0 || lk__session_reregister(c));
}

static void begin_live(lk_client *c, const lk_handshake *h)
{
  if (!h->read_only)
    c->session.identity = h->session;
  c->session.timeout_ms = h->timeout_ms;
  c->connection.read_only = h->read_only;
  c->connection.phase = LK_PHASE_LIVE;
  c->connection.number = ++c->connection.count;
  c->connection.live_ms = c->now;
  c->move.quorum_only = false;
  c->connection.received_ms = c->now;
  c->session.proven_ms = c->connection.handshake_sent_ms;
  if (c->connection.read_only)
    lk__probe_begin(c);
}

/* A server may hang up after each handshake, or after the first requests: that
 * is no success. A third of the timeout is when an idle client has sent a
 * ping. */
void lk__session_answered(lk_client *c)
{
  if (c->now - c->connection.live_ms < c->session.timeout_ms / 3)
    return;
  c->connection.failed_rounds = 0;
  lk__hosts_end_round(&c->hosts);
}

static lk_evidence proof_of(const lk_handshake *h, bool resumed)
{
  if (h->read_only)
    return LK_EVIDENCE_NONE;
  return resumed ? LK_EVIDENCE_RESUMED : LK_EVIDENCE_NEW_SESSION;
}

/* The first that is told of a connection: whatever a callback does from here
 * on, it finds the connection whole. */
static void tell_live(lk_client *c, const lk_handshake *h, bool resumed)
{
  lk_reply answer = {.proof = proof_of(h, resumed),
                     .sent_ms = c->connection.handshake_sent_ms,
                     .received_ms = c->now,
                     .connection = c->connection.number};

  c->session.state = h->read_only ? LK_STATE_READ_ONLY : LK_STATE_CONNECTED;
  lk__client_logf(c, LK_LOG_INFO, 0, "%s: %s session 0x%" PRIx64 ", %d ms",
                  c->connection.server,
                  h->read_only ? "read-only"
                  : resumed    ? "resumed"
                               : "new",
                  (uint64_t)h->session.id, (int)c->session.timeout_ms);
  lk__client_notify_reply(c, &answer);
  lk__client_enter_state(c, c->session.state, 0);
}

/* Begin to serve requests; `unknown` gets the watches that this server cannot
 * set again. false: there is no memory, and nobody was told anything. */
static bool set_up(lk_client *c, const lk_handshake *h, lk_link *unknown)
{
  bool resumed = c->session.identity.id != 0;

  lk__list_init(unknown);
  if (lk__request_is_unsupported(c, LK_OPCODE_SET_WATCHES2))
    lk__watches_take_staying(&c->watches, unknown);
  begin_live(c, h);
  if (restore(c))
    return true;
  c->connection.phase = LK_PHASE_HANDSHAKE;
  if (!resumed)
    clear_session(c); /* of which nobody knows: it cannot expire, either */
  lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
  return false;
}

void lk__session_establish(lk_client *c, const lk_handshake *h)
{
  bool resumed = c->session.identity.id != 0;
  lk_link unknown;

  if (!set_up(c, h, &unknown)) {
    lk__watches_notify_ended(c, &unknown, LK_ERR_UNIMPLEMENTED);
    return;
  }
  tell_live(c, h, resumed);
  bool released = lk__requests_release(c);

  lk__requests_finish(c, 0); /* what was set aside */
  if (!released || (c->close.begun && !c->close.sent && !lk__request_close(c)))
    lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
  else
    lk__watches_notify_resumed(c, false);
  lk__watches_notify_ended(c, &unknown, LK_ERR_UNIMPLEMENTED);
}

void lk__session_take_handshake(lk_client *c, lk_bytes frame)
{
  lk_handshake h = greeting(c);

  switch (lk__handshake_decode(&h, frame)) {
  case LK_WELCOME_SESSION:
    if (c->sasl != NULL)
      lk__sasl_begin(c, &h);
    else
      lk__session_establish(c, &h);
    break;
  case LK_WELCOME_EXPIRED:
    if (c->session.identity.id != 0)
      lk__session_expire(c, "the server does not know the session any more");
    else
      lk__session_break(c, LK_ERR_REFUSED, "refused a new session");
    break;
  case LK_WELCOME_READ_ONLY:
    lk__session_break(c, LK_ERR_NOT_READ_ONLY, "has no quorum (read-only)");
    break;
  case LK_WELCOME_BAD:
    lk__session_break(c, LK_ERR_PROTOCOL, "is this a ZooKeeper server?");
    break;
  }
}

/* ---- ends -------------------------------------------------------------- */

/* Tell everybody who waits for something of this session that it is over. */
static void end_all(lk_client *c, lk_state state, int state_err, int err)
{
  lk_link fired;

  lk__list_init(&fired);
  lk__watches_take(&c->watches, true, &fired);
  lk__requests_detach(c, true);
  lk__client_wake(c);
  lk__client_enter_state(c, state, state_err);
  lk__requests_finish(c, err);
  lk__watches_notify_ended(c, &fired, err);
}

void lk__session_expire(lk_client *c, const char *why)
{
  set_trouble(c, LK_LOG_INFO, LK_ERR_SESSION_EXPIRED, why);
  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_SESSION_EXPIRED,
                  "session 0x%" PRIx64 " has expired: %s",
                  (uint64_t)c->session.identity.id, why);
  forget_session(c);
  c->connection.phase = c->options.one_session || c->close.begun
                            ? LK_PHASE_ENDED
                            : LK_PHASE_PAUSE;
  c->connection.retry_ms = c->now;
  if (c->connection.phase == LK_PHASE_ENDED)
    c->session.final_err = LK_ERR_CLOSED;
  end_all(c, LK_STATE_EXPIRED, LK_ERR_SESSION_EXPIRED, LK_ERR_SESSION_EXPIRED);
  if (c->close.begun)
    lk__session_closed(c, LK_ERR_SESSION_EXPIRED);
  else if (c->connection.phase == LK_PHASE_PAUSE)
    lk__client_enter_state(c, LK_STATE_CONNECTING, 0);
  else
    lk__auth_fail_all(c, LK_ERR_SESSION_EXPIRED);
}

static void end(lk_client *c, lk_state state, int state_err, int err)
{
  c->connection.phase = LK_PHASE_ENDED;
  c->session.final_err = err;
  c->close.sent = false;
  drop_connection(c);
  end_all(c, state, state_err, err);
  lk__auth_fail_all(c, err);
}

/* What a server wants that insists on authentication. */
static const char *wanted_identity(const lk_client *c)
{
  return c->sasl == NULL ? "the server insists on authentication; "
                           "lk_client_config.sasl gives an identity"
                         : "the server insists on another authentication than "
                           "that of lk_client_config.sasl";
}

void lk__session_refused(lk_client *c, int err, const char *why)
{
  if (why == NULL && err == LK_ERR_AUTH_REQUIRED)
    why = wanted_identity(c);
  set_trouble(c, LK_LOG_ERROR, err, why);
  end(c, LK_STATE_AUTH_FAILED, err, LK_ERR_AUTH_FAILED);
  if (c->close.begun)
    lk__session_closed(c, LK_ERR_AUTH_FAILED);
}

void lk__session_closed(lk_client *c, int err)
{
  lk_close_cb done = c->close.done;

  c->close.done = NULL;
  c->close.end_ms = LK_NEVER;
  end(c, LK_STATE_CLOSED, 0, LK_ERR_CLOSED);
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (done != NULL)
    done(c, err, c->close.arg);
}
