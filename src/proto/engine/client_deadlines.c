/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client_deadlines.h"

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/timers.h"

/* Conditions of rare work are tested here before a function is called: this
 * runs for each input, and the calls cost a single read 4 % more
 * instructions. */

static void run_live(lk_client *c)
{
  if (c->now >= c->set_watches.retry_ms)
    lk__set_watches_run_retry(c);
  if (c->rejected.op != 0)
    lk__rejected_run(c);
  if (c->move.wanted)
    lk__move_run(c);
  if (c->now >= c->probe.due_ms)
    lk__probe_run(c);
  if (c->connection.phase != LK_PHASE_LIVE)
    return;
  if (c->set_watches.failed)
    lk__session_break(c, LK_ERR_NO_MEMORY,
                      "out of memory for re-registering a watch");
  else
    lk__pings_run(c);
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
  return lk__earlier(at, lk__pings_deadline(c));
}

/* Do what is due in the present phase. This runs only at depth 0, so a
 * connection whose input was lost inside a callback can be ended now. The input
 * was dropped, so the replies in it are lost. */
static void run_phase(lk_client *c)
{
  if (c->connection.input_lost)
    lk__session_break(c, LK_ERR_CONNECTION_LOSS,
                      "input from inside a callback");
  switch (c->connection.phase) {
  case LK_PHASE_PAUSE:
    if (c->now >= c->connection.retry_ms)
      lk__session_connect(c);
    break;
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL: lk__connect_timeout_run(c); break;
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
  if (c->close.begun)
    lk__close_run(c);
  if (c->now >= lk__session_give_up_at(c))
    lk__session_give_up(c);
  run_phase(c);
}

int64_t lk__client_next_deadline(const lk_client *c)
{
  int64_t at =
      lk__earlier(lk__deadline_next(&c->deadlines), lk__session_give_up_at(c));

  if (c->requests.late.count > 0)
    return c->now;
  if (c->timers.root != NULL)
    at = lk__earlier(at, lk__timers_deadline(c));
  if (c->close.begun)
    at = lk__earlier(at, lk__close_deadline(c));
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
