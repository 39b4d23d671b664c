/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "proto/engine/invariants.h"
#include "proto/engine/set_watches.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEEP = 64 * 1024 };

/* ---- looking for a server ---------------------------------------------- */

void lk__session_connect(lk_client *c)
{
  const lk_host *h = lk__hosts_current(&c->hosts);
  bool literal6 = strchr(h->name, ':') != NULL;

  c->attempt++;
  c->phase = LK_PHASE_CONNECTING;
  lk__hosts_use(&c->hosts);
  lk__timing_begin_attempt(c);
  snprintf(c->server, sizeof c->server, "%s%s%s:%u", literal6 ? "[" : "",
           h->name, literal6 ? "]" : "", (unsigned)h->port);
  lk__client_wake(c);
}

static void drop_connection(lk_client *c)
{
  lk__buf_consume(&c->out, lk__buf_len(&c->out));
  lk__buf_trim(&c->out, KEEP);
  lk__frames_reset(&c->frames);
  c->connection = 0;
  c->moving = false;
  c->fence = UINT64_MAX;
  while (c->pings.count > 0)
    lk__ring_pop(&c->pings);
  c->unknown_op = 0;
  c->rearms_out = 0;
  c->rearm_again = false;
  c->rearm_tries = 0;
  c->rearm_ms = LK_NEVER;
  c->watches.on_its_way = false;
  c->watch_lost = false;
  c->input_lost = false;
  c->auth_next = NULL;
  c->no_quorum = false;
  lk__probe_stop(c);
  lk__sasl_drop(c);
}

static void set_trouble(lk_client *c, int level, int err, const char *why)
{
  c->trouble_err = err;
  snprintf(c->trouble, sizeof c->trouble, "%s: %s", c->server,
           why == NULL ? lk_error_text(err) : why);
  lk__client_logf(c, level, err, "%s", c->trouble);
}

/* A session that is refused is given up some time, and forgets. Where there is
 * none, what a server without a quorum has shown is forgotten now. */
static void report_refusals(lk_client *c)
{
  bool session = c->session.id != 0;

  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_REFUSED,
                  "no server takes this %s: they may have lost what it has "
                  "seen (zxid 0x%" PRIx64 ")%s",
                  session ? "session back" : "client", (uint64_t)c->last_zxid,
                  session ? "" : ", which it forgets");
  if (!session)
    c->last_zxid = 0;
}

/* If every server hangs up on a session that has seen more than they have, they
 * were restored or wiped, and it will not end by itself: say so. While they
 * elect a leader they hang up as well, for a shorter time. */
static void end_round(lk_client *c)
{
  bool long_since = c->now - c->heard_ms >= c->timeout_ms / 2;

  if (c->refused_round && c->last_zxid > 0 && long_since)
    report_refusals(c);
  c->refused_round = true;
  c->insists = false;
  c->rounds++;
}

/* Try the next address or server, at once or after a pause. */
static void go_on(lk_client *c, bool was_live)
{
  bool round = lk__hosts_next(&c->hosts);

  if (round)
    end_round(c);
  int64_t pause = round || was_live ? lk__timing_pause(c) : 0;

  c->retry_ms = c->now + pause;
  if (pause == 0)
    lk__session_connect(c);
}

/* What the next connection need not tell watches of. A server without a quorum
 * may have shown what never came to be, and is undone with zxids below. */
static int64_t known_until(const lk_client *c)
{
  return c->no_quorum ? 0 : c->last_zxid;
}

void lk__session_break(lk_client *c, int err, const char *why)
{
  bool was_live = c->phase == LK_PHASE_LIVE;
  bool moves = c->moving;
  lk_link fired;

  set_trouble(c, err == LK_ERR_TLS ? LK_LOG_WARNING : LK_LOG_INFO, err, why);
  c->refused_round = c->refused_round && err == LK_ERR_REFUSED;
  c->phase = LK_PHASE_PAUSE;
  if (was_live)
    lk__watches_mark_missing(&c->watches, known_until(c));
  drop_connection(c);
  c->close_lost =
      lk__request_close_verdict(c, LK_ERR_IN_DOUBT) == LK_ERR_IN_DOUBT;
  c->close_sent = false;
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
  if (!c->moving)
    c->moving_since_ms = c->now;
  c->moving = true; /* nobody is told of it in the middle of a call */
  lk__probe_stop(c);
  lk__client_wake(c);
}

void lk__session_set_hosts(lk_client *c, lk_hosts *fresh)
{
  bool another =
      lk__hosts_replace(&c->hosts, fresh, c->hooks.random, c->hooks.arg);

  if (!another) {
    if (c->no_quorum && !c->moving)
      lk__probe_begin(c); /* of the servers that there are now */
    return;
  }
  switch (c->phase) {
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
  memset(&c->session, 0, sizeof c->session);
  c->timeout_ms = c->wanted_timeout_ms;
}

static void forget_session(lk_client *c)
{
  drop_connection(c);
  clear_session(c);
  c->last_zxid = 0;
  c->xid = 0;
}

/* ---- handshake --------------------------------------------------------- */

/* A server without a quorum that is asked for a session takes one that it has
 * never heard of for expired, or for its own. It is asked for none. */
static lk_handshake greeting(const lk_client *c)
{
  bool any = c->read_only && !c->insists && c->session.id == 0;

  return (lk_handshake){.last_zxid = c->last_zxid,
                        .timeout_ms = c->wanted_timeout_ms,
                        .session = c->session,
                        .read_only = any};
}

void lk__session_send_handshake(lk_client *c)
{
  lk_handshake h = greeting(c);

  drop_connection(c);
  c->out_sent = 0;
  if (!lk__buf_reserve(&c->out, LK_HANDSHAKE_LEN)) {
    lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__handshake_encode(&h, lk__buf_room(&c->out));
  c->out.end += LK_HANDSHAKE_LEN;
  c->greeted = c->attempt;
  c->phase = LK_PHASE_HANDSHAKE;
  c->handshake_sent_ms = c->now;
  lk__client_wake(c);
}

bool lk__session_reregister(lk_client *c)
{
  int count =
      lk__set_watches_encode(&c->watches, c->last_zxid, c->send_limit, &c->out);

  if (count < 0)
    return false;
  c->rearms = c->rearms_out = (size_t)count;
  c->rearm_again = false;
  return true;
}

void lk__session_reregistered(lk_client *c, bool missing)
{
  if (missing)
    lk__timing_reregister_later(c);
  else
    c->rearm_tries = 0;
}

/* What belongs to a connection goes first: identities, then watches. */
static bool restore(lk_client *c)
{
  c->auth_next = c->auths;
  for (const lk_auth *a = c->auths; a != NULL; a = a->next) {
    if (!lk__buf_append_secret(&c->out, a->frame, a->len))
      return false;
  }
  return c->watches.standing == 0 || lk__session_reregister(c);
}

static void begin_live(lk_client *c, const lk_handshake *h)
{
  if (!h->read_only)
    c->session = h->session;
  c->timeout_ms = h->timeout_ms;
  c->no_quorum = h->read_only;
  c->phase = LK_PHASE_LIVE;
  c->connection = ++c->connections;
  c->live_ms = c->now;
  c->insists = false;
  c->heard_ms = c->now;
  c->proven_ms = c->handshake_sent_ms;
  if (c->no_quorum)
    lk__probe_begin(c);
}

/* A server may hang up after each handshake, or after the first requests: that
 * is no success. A third of the timeout is when an idle client has sent a
 * ping. */
void lk__session_answered(lk_client *c)
{
  if (c->now - c->live_ms < c->timeout_ms / 3)
    return;
  c->rounds = 0;
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
                     .sent_ms = c->handshake_sent_ms,
                     .received_ms = c->now,
                     .connection = c->connection};

  c->state = h->read_only ? LK_STATE_READ_ONLY : LK_STATE_CONNECTED;
  lk__client_logf(c, LK_LOG_INFO, 0, "%s: %s session 0x%" PRIx64 ", %d ms",
                  c->server,
                  h->read_only ? "read-only"
                  : resumed    ? "resumed"
                               : "new",
                  (uint64_t)h->session.id, (int)c->timeout_ms);
  lk__client_notify_reply(c, &answer);
  lk__client_enter_state(c, c->state, 0);
}

/* Begin to serve requests; `unknown` gets the watches that this server cannot
 * set again. false: there is no memory, and nobody was told anything. */
static bool set_up(lk_client *c, const lk_handshake *h, lk_link *unknown)
{
  bool resumed = c->session.id != 0;

  lk__list_init(unknown);
  if (lk__request_is_unsupported(c, LK_OPCODE_SET_WATCHES2))
    lk__watches_take_staying(&c->watches, unknown);
  begin_live(c, h);
  if (restore(c))
    return true;
  c->phase = LK_PHASE_HANDSHAKE;
  if (!resumed)
    clear_session(c); /* of which nobody knows: it cannot expire, either */
  lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
  return false;
}

void lk__session_establish(lk_client *c, const lk_handshake *h)
{
  bool resumed = c->session.id != 0;
  lk_link unknown;

  if (!set_up(c, h, &unknown)) {
    lk__watches_notify_ended(c, &unknown, LK_ERR_UNIMPLEMENTED);
    return;
  }
  tell_live(c, h, resumed);
  bool released = lk__requests_release(c);

  lk__requests_finish(c, 0); /* what was set aside */
  if (!released || (c->closing && !c->close_sent && !lk__request_close(c)))
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
    if (c->session.id != 0)
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

/* Identities that no server has answered yet will not be answered any more. */
static void end_auths(lk_client *c, int err)
{
  for (lk_auth *a = c->auths; a != NULL; a = a->next) {
    lk_done_cb done = a->done;

    a->done = NULL;
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (done != NULL)
      done(c, err, a->arg);
  }
}

void lk__session_expire(lk_client *c, const char *why)
{
  set_trouble(c, LK_LOG_INFO, LK_ERR_SESSION_EXPIRED, why);
  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_SESSION_EXPIRED,
                  "session 0x%" PRIx64 " has expired: %s",
                  (uint64_t)c->session.id, why);
  forget_session(c);
  c->phase = c->one_session || c->closing ? LK_PHASE_ENDED : LK_PHASE_PAUSE;
  c->retry_ms = c->now;
  if (c->phase == LK_PHASE_ENDED)
    c->final_err = LK_ERR_CLOSED;
  end_all(c, LK_STATE_EXPIRED, LK_ERR_SESSION_EXPIRED, LK_ERR_SESSION_EXPIRED);
  if (c->closing)
    lk__session_closed(c, LK_ERR_SESSION_EXPIRED);
  else if (c->phase == LK_PHASE_PAUSE)
    lk__client_enter_state(c, LK_STATE_CONNECTING, 0);
  else
    end_auths(c, LK_ERR_SESSION_EXPIRED);
}

static void end(lk_client *c, lk_state state, int state_err, int err)
{
  c->phase = LK_PHASE_ENDED;
  c->final_err = err;
  c->close_sent = false;
  drop_connection(c);
  end_all(c, state, state_err, err);
  end_auths(c, err);
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
  if (c->closing)
    lk__session_closed(c, LK_ERR_AUTH_FAILED);
}

void lk__session_closed(lk_client *c, int err)
{
  lk_close_cb done = c->close_done;

  c->close_done = NULL;
  c->close_end_ms = LK_NEVER;
  end(c, LK_STATE_CLOSED, 0, LK_ERR_CLOSED);
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (done != NULL)
    done(c, err, c->close_arg);
}
