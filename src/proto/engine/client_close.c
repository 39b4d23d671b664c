/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client_close.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

enum { CLOSE_MS = 1500 }; /* the longest time that a close may take */

bool lk__close_send(lk_client *c)
{
  lk_call_spec spec = {.op = LK_OPCODE_CLOSE_SESSION};

  if (lk__request_queue(c, &spec) != 0)
    return false;
  c->close.sent = true;
  return true;
}

int lk__close_outcome(const lk_client *c, int unanswered)
{
  if (c->close.sent) {
    const lk_request *close_session =
        lk__ring_at(&c->requests.sent, c->requests.sent.count - 1);

    if (close_session->end <= c->output.sent)
      return unanswered; /* it was sent in full */
  }
  if (c->close.lost)
    return LK_ERR_IN_DOUBT;
  /* Without a session the close has succeeded. */
  return c->session.identity.id == 0 ? 0 : LK_ERR_NOT_SENT;
}

/* Whether the close has nothing to wait for: there is no session that would
 * have to be closed, and no request waits for a new session. */
static bool has_nothing_to_close(const lk_client *c)
{
  bool has_session =
      c->connection.phase == LK_PHASE_LIVE || c->session.identity.id != 0;
  bool requests_wait =
      c->requests.waiting.count > c->requests.waiting_completed;

  return !has_session && !requests_wait;
}

/* Send closeSession on the live connection. A client that closes does not move
 * to another server any more, so the limit of the output is lifted. */
static void send_close(lk_client *c)
{
  if (c->rejected.op != 0)
    return; /* the server closes this connection: send it on the next one */
  c->output.limit = UINT64_MAX;
  if (c->requests.waiting.count == 0)
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
