/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client_deadlines.h"

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/timers.h"

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
  lk__session_end_connection(c, LK_ERR_UNIMPLEMENTED, why);
}

static void run_pings(lk_client *c)
{
  int err = lk__pings_run(c);

  if (err != 0)
    lk__session_end_connection(
        c, err,
        err == LK_ERR_CONNECTION_LOSS
            ? "no bytes received for two thirds of the session timeout"
            : NULL);
}

/* At most one of these ends the connection, and nothing follows it. */
static void run_live(lk_client *c)
{
  if (c->now >= c->set_watches.retry_ms && !lk__set_watches_run_retry(c))
    lk__session_end_connection(c, LK_ERR_NO_MEMORY, NULL);
  else if (c->rejected.op != 0 && c->now >= lk__rejected_deadline(c))
    leave_rejecting_server(c);
  else if (c->move.wanted && lk__move_run(c))
    lk__session_end_connection(c, 0, lk__move_text(c));
  else if (c->set_watches.failed)
    lk__session_end_connection(c, LK_ERR_NO_MEMORY,
                               "out of memory for re-registering a watch");
  else {
    if (c->now >= c->probe.due_ms)
      lk__probe_run(c);
    run_pings(c);
  }
}

static int64_t live_deadline(const lk_client *c)
{
  int64_t at = lk__earlier(c->probe.due_ms, c->set_watches.retry_ms);

  if (c->set_watches.failed)
    return c->now;
  if (c->move.wanted)
    at = lk__earlier(at, lk__move_deadline(c));
  if (c->rejected.op != 0)
    at = lk__earlier(at, lk__rejected_deadline(c));
  if (c->requests.sent.count > 0)
    at = lk__earlier(at, lk__silence_deadline(c));
  return lk__earlier(at, lk__pings_deadline(c));
}

static void time_out_attempt(lk_client *c)
{
  char why[TEXT_SIZE];

  lk__connect_timeout_text(c, why, sizeof why);
  lk__session_end_connection(c, lk__connect_timeout_err(c), why);
}

/* Do what is due in the present phase. This runs only at depth 0, so a
 * connection whose input was lost inside a callback can be ended now. The input
 * was dropped, so the replies in it are lost. */
static void run_phase(lk_client *c)
{
  if (c->connection.input_lost)
    lk__session_end_connection(c, LK_ERR_CONNECTION_LOSS,
                               "input from inside a callback");
  switch (c->connection.phase) {
  case LK_PHASE_PAUSE:
    if (c->now >= c->connection.retry_ms)
      lk__session_connect(c);
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

void lk__client_run_due(lk_client *c)
{
  if (c->timers.root != NULL)
    lk__timers_run(c);
  if (c->requests.late.count > 0 || c->now >= lk__deadline_next(&c->deadlines))
    lk__requests_time_out(c);
  if (c->close.begun && lk__close_is_due(c))
    lk__session_closed(c, lk__close_outcome(c, LK_ERR_DEADLINE));
  if (c->now >= lk__session_give_up_at(c))
    lk__session_give_up(c);
  run_phase(c);
}

void lk__client_leave_silent_server(lk_client *c)
{
  char why[TEXT_SIZE];

  if (c->connection.phase != LK_PHASE_LIVE || c->requests.sent.count == 0 ||
      !lk__silence_run(c))
    return;
  lk__silence_text(c, why, sizeof why);
  lk__session_end_connection(c, LK_ERR_CONNECTION_LOSS, why);
}

/* An ended client fires the timers that are due, such as those by which objects
 * learn of the end, and waits for no others. */
static int64_t timer_deadline(const lk_client *c)
{
  int64_t at = lk__timers_deadline(c);
  bool has_ended = c->connection.phase == LK_PHASE_ENDED;

  /* The driver makes no inputs any more, which would advance c->now. */
  return has_ended && at > c->hooks.now(c->hooks.arg) ? LK_NEVER : at;
}

int64_t lk__client_next_deadline(const lk_client *c)
{
  int64_t at =
      lk__earlier(lk__deadline_next(&c->deadlines), lk__session_give_up_at(c));

  if (c->requests.late.count > 0)
    return c->now;
  if (c->timers.root != NULL)
    at = lk__earlier(at, timer_deadline(c));
  if (c->close.begun)
    at = lk__earlier(at, c->close.end_ms);
  /* Inside a callback nothing can be done yet: see run_phase(). */
  if (c->connection.input_lost && c->nesting.depth == 0)
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
