/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/session.h"

#include <inttypes.h>

#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

/* ---- what ends with a session -------------------------------------------- */

static void forget_session(lk_client *c)
{
  lk__engine_connection_reset(c);
  lk__session_clear_identity(c);
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
