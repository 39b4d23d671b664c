/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The handshake: from the connect request to the waiting requests, which are
 * sent when the server has accepted the session. */

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/server_support.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_events.h"
#include "proto/wire/opcode.h"

#include <inttypes.h>

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

  lk__session_reset_connection(c);
  c->output.sent = 0;
  if (!lk__buf_reserve(&c->output.bytes, LK_HANDSHAKE_LEN)) {
    lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__handshake_encode(&h, lk__buf_room(&c->output.bytes));
  c->output.bytes.end += LK_HANDSHAKE_LEN;
  c->connection.handshake_attempt = c->connection.attempt;
  lk__session_enter_phase(c, LK_PHASE_HANDSHAKE);
  c->connection.handshake_sent_ms = c->now;
  c->connection.oldest_handshake_ms =
      lk__earlier(c->connection.oldest_handshake_ms, c->now);
  lk__connect_timeout_begin_handshake(c);
  lk__client_wake(c);
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
  lk__session_enter_phase(c, LK_PHASE_LIVE);
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

/* A faulty server may close each connection after the handshake or after the
 * first requests. So a connection counts as working only after a third of the
 * session timeout, at a reply; an idle client has sent a ping by then. */
void lk__session_note_reply(lk_client *c)
{
  if (c->now - c->connection.live_ms < c->session.timeout_ms / 3)
    return;
  c->connection.failed_rounds = 0;
  c->connection.passes = 0;
  lk__hosts_end_round(&c->hosts);
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
  /* lk__session_end_connection() must not treat the connection as live. */
  lk__session_enter_phase(c, LK_PHASE_HANDSHAKE);
  /* A new session was never reported, so it must not be reported as expired. */
  if (!resumed)
    lk__session_clear_identity(c);
  lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
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
    lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
  else
    lk__watches_notify_reregistered(c);
  lk__watches_notify_ended(c, &unsupported, LK_ERR_UNIMPLEMENTED);
}

void lk__session_end_bad_connection(lk_client *c, const char *why)
{
  bool is_first_reply = c->connection.phase == LK_PHASE_HANDSHAKE;

  lk__session_end_connection(
      c, LK_ERR_PROTOCOL,
      is_first_reply ? "malformed reply to the connect request" : why);
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
      lk__session_end_connection(c, LK_ERR_REFUSED, "refused a new session");
    break;
  case LK_WELCOME_READ_ONLY:
    lk__session_end_connection(c, LK_ERR_NOT_READ_ONLY,
                               "the server is read-only: it has no quorum");
    break;
  case LK_WELCOME_BAD: lk__session_end_bad_connection(c, NULL); break;
  }
  return false;
}
