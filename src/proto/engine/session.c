/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/session.h"

#include <inttypes.h>

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/connection.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

/* ---- the handshake ------------------------------------------------------- */

/* Forget the id and password of the session, and its negotiated timeout. */
static void clear_identity(lk_client *c)
{
  memset(&c->session.identity, 0, sizeof c->session.identity);
  c->session.timeout_ms = c->options.timeout_ms;
}

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

void lk__session_send_handshake(lk_client *c)
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

bool lk__session_take_handshake(lk_client *c, lk_bytes frame,
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
  if (lk__request_is_unsupported(c, LK_OPCODE_SET_WATCHES2))
    lk__watches_take_staying(&c->watches, unsupported);
  enter_live(c, h);
  if (send_auth_and_watches(c))
    return true;
  /* lk__engine_connection_end() must not treat the connection as live. */
  lk__engine_connection_enter_phase(c, LK_PHASE_HANDSHAKE);
  /* A new session was never reported, so it must not be reported as expired. */
  if (!resumed)
    clear_identity(c);
  lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
  return false;
}

void lk__session_establish(lk_client *c, const lk_handshake *h)
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

/* ---- what ends with a session -------------------------------------------- */

static void forget_session(lk_client *c)
{
  lk__engine_connection_reset(c);
  clear_identity(c);
  c->session.last_zxid = 0;
  c->session.last_xid = 0;
  c->connection.oldest_handshake_ms = LK_NEVER;
}

/* Enter the state in which the session ends, complete all its requests and end
 * all its watches. A client that ends with the session enters LK_STATE_CLOSED
 * in between. Listeners get `state_err`, requests and watches `err`. */
static void end_session(lk_client *c, lk_state state, int state_err, int err)
{
  bool client_ends = c->session.final_err != 0;
  lk_link ended;

  lk__list_init(&ended);
  lk__watches_take_all(&c->watches, &ended);
  lk__requests_detach_all(c);
  lk__client_wake(c);
  lk__client_enter_state(c, state, state_err);
  if (client_ends && state != LK_STATE_CLOSED)
    lk__client_enter_state(c, LK_STATE_CLOSED, state_err);
  lk__requests_finish_all(c, err);
  lk__watches_notify_ended(c, &ended, err);
}

/* End the session and the client. `close_err` is the result of
 * lk_client_close(), if it was called. */
static void end_client(lk_client *c, lk_state state, int state_err, int err,
                       int close_err)
{
  lk_close_cb done = c->close.done;

  c->close.done = NULL;
  c->close.end_ms = LK_NEVER;
  c->close.sent = false;
  lk__engine_connection_enter_phase(c, LK_PHASE_ENDED);
  c->session.final_err = err;
  lk__engine_connection_reset(c);
  end_session(c, state, state_err, err);
  lk__auth_fail_all(c, err);
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (done != NULL)
    done(c, close_err, c->close.arg);
}

/* ---- expiry -------------------------------------------------------------- */

void lk__session_expire(lk_client *c, const char *why)
{
  lk__engine_connection_note_error(c, LK_LOG_INFO, LK_ERR_SESSION_EXPIRED, why);
  lk__client_logf(c, LK_LOG_WARNING, LK_ERR_SESSION_EXPIRED,
                  "session 0x%" PRIx64 " has expired: %s",
                  (uint64_t)c->session.identity.id, why);
  forget_session(c);
  if (c->options.one_session || c->close.begun) {
    end_client(c, LK_STATE_EXPIRED, LK_ERR_SESSION_EXPIRED,
               LK_ERR_SESSION_EXPIRED, LK_ERR_SESSION_EXPIRED);
    return;
  }
  lk__engine_connection_enter_phase(c, LK_PHASE_PAUSE);
  c->connection.retry_ms = c->now;
  end_session(c, LK_STATE_EXPIRED, LK_ERR_SESSION_EXPIRED,
              LK_ERR_SESSION_EXPIRED);
  if (c->close.begun) /* by a callback */
    end_client(c, LK_STATE_CLOSED, LK_ERR_SESSION_EXPIRED, LK_ERR_CLOSED,
               LK_ERR_SESSION_EXPIRED);
  else if (c->connection.phase == LK_PHASE_PAUSE)
    lk__client_enter_state(c, LK_STATE_CONNECTING, 0);
}

int64_t lk__session_give_up_at(const lk_client *c)
{
  if (c->session.identity.id == 0 || c->connection.phase == LK_PHASE_LIVE ||
      c->connection.phase == LK_PHASE_ENDED || c->options.give_up_ms < 0)
    return LK_NEVER;
  int64_t default_ms = (int64_t)c->session.timeout_ms * 4 / 3;
  int64_t ms = c->options.give_up_ms > 0 ? c->options.give_up_ms : default_ms;

  return lk__later(c->session.proven_ms, c->pings.overlapping_ping_ms) + ms;
}

/* The servers may keep the abandoned session for longer than the client does.
 * They count its timeout from the last bytes that they received, and round it
 * up to a tick. A session timeout has at least two ticks, so one and a half
 * timeouts are enough. */
void lk__session_give_up(lk_client *c)
{
  int64_t until = lk__later(c->session.proven_ms, c->output.sent_ms) +
                  (int64_t)c->session.timeout_ms * 3 / 2;

  if (until > c->session.abandoned_end_ms)
    c->session.abandoned_end_ms = until;
  lk__session_expire(c,
                     "no reply from any server within the limit (give_up_ms)");
}

/* ---- refusal by the server ----------------------------------------------- */

/* The text of the log if the server requires authentication. */
static const char *auth_required_text(const lk_client *c)
{
  return c->sasl == NULL ? "the server requires authentication; "
                           "lk_client_config.sasl gives an identity"
                         : "the server requires another authentication than "
                           "that of lk_client_config.sasl";
}

void lk__session_refused(lk_client *c, int err, const char *why)
{
  if (why == NULL && err == LK_ERR_AUTH_REQUIRED)
    why = auth_required_text(c);
  lk__engine_connection_note_error(c, LK_LOG_ERROR, err, why);
  end_client(c, LK_STATE_AUTH_FAILED, err, LK_ERR_AUTH_FAILED,
             LK_ERR_AUTH_FAILED);
}

/* ---- lk_client_close() --------------------------------------------------- */

enum { CLOSE_MS = 1500 }; /* the longest time that a close may take */

bool lk__close_send(lk_client *c)
{
  lk_call_spec spec = {.op = LK_OPCODE_CLOSE_SESSION};

  if (lk__request_queue(c, &spec) != 0)
    return false;
  c->close.sent = true;
  return true;
}

/* Whether the close has nothing to wait for: there is no session that would
 * have to be closed, and no request waits for a new session. */
static bool has_nothing_to_close(const lk_client *c)
{
  bool has_session =
      c->connection.phase == LK_PHASE_LIVE || c->session.identity.id != 0;
  bool requests_wait =
      lk__buf_len(&c->requests.waiting_frames) > c->requests.completed_len;

  return !has_session && !requests_wait;
}

/* Send closeSession on the live connection. A client that closes does not move
 * to another server any more, so the limit of the output is lifted. */
static void send_close(lk_client *c)
{
  if (c->rejected.op != 0)
    return; /* the server closes this connection: send it on the next one */
  c->output.limit = UINT64_MAX;
  if (lk__list_empty(&c->requests.waiting))
    (void)lk__close_send(c); /* without memory the deadline ends the client */
}

int lk_client_close(lk_client *c, lk_close_cb done, void *arg)
{
  if (lk__client_refusal(c) == LK_ERR_FORKED)
    return LK_ERR_FORKED;
  if (c->close.begun || c->nesting.free_wanted || c->session.final_err != 0)
    return LK_ERR_CLOSED;
  lk__client_enter(c);
  c->close.done = done;
  c->close.arg = arg;
  c->close.end_ms = c->now + CLOSE_MS;
  lk__probe_stop(c);
  if (c->connection.phase == LK_PHASE_LIVE)
    send_close(c);
  else if (has_nothing_to_close(c))
    c->close.end_ms = c->now; /* the next input completes the close */
  c->close.begun = true;
  lk__client_wake(c);
  lk__client_notify_closing(c);
  lk__client_leave(c);
  return 0;
}

bool lk__close_is_due(const lk_client *c)
{
  return c->session.final_err == 0 &&
         (c->now >= c->close.end_ms || has_nothing_to_close(c));
}

int lk__close_outcome(const lk_client *c, int unanswered)
{
  if (c->close.sent) {
    const lk_request *close_session =
        LK_OWNER(c->requests.sent.prev, lk_request, link);

    if (close_session->end <= c->output.sent)
      return unanswered; /* it was sent in full */
  }
  if (c->close.lost)
    return LK_ERR_IN_DOUBT;
  /* Without a session the close has succeeded. */
  return c->session.identity.id == 0 ? 0 : LK_ERR_NOT_SENT;
}

void lk__session_closed(lk_client *c, int err)
{
  const int no_state_err = 0;

  end_client(c, LK_STATE_CLOSED, no_state_err, LK_ERR_CLOSED, err);
}
