/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/client_deadlines.h"
#include "proto/engine/invariants.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_events.h"
#include "proto/wire/opcode.h"

#include <stdio.h>

enum {
  MAX_FIRES = 10000, /* timers in one go: those that start themselves again
                        must not keep the loop for ever */
  PING_LEN = 12
};

static void run_set_watches_retry(lk_client *c)
{
  if (c->now < c->set_watches.retry_ms)
    return;
  c->set_watches.retry_ms = LK_NEVER;
  if (c->close.begun)
    return; /* nothing follows closeSession */
  if (!lk__set_watches_send(c))
    lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
  else if (c->set_watches.unanswered ==
           0) { /* addWatch has registered them, or they ended */
    lk__set_watches_finish(
        c, lk__set_watches_acknowledge(&c->watches, UINT32_MAX));
    lk__watches_notify_resumed(c, true);
  }
  lk__client_wake(c);
}

static int64_t silence_end(const lk_client *c)
{
  return c->connection.received_ms + (int64_t)c->session.timeout_ms * 2 / 3;
}

/* While the server sends nothing, one ping is outstanding at most. Its reply
 * comes behind the bytes that are arriving, and a long reply on a slow
 * connection can take longer than the session timeout: while bytes arrive,
 * another ping follows, but none before the last one was sent. */
static int64_t ping_due(const lk_client *c)
{
  int64_t third = c->session.timeout_ms / 3, newest;

  if (c->pings.sent_ms.count == 0)
    return c->output.empty_ms + third;
  memcpy(&newest, lk__ring_at(&c->pings.sent_ms, c->pings.sent_ms.count - 1),
         sizeof newest);
  if (c->connection.received_ms <= newest || c->pings.end > c->output.sent)
    return LK_NEVER;
  return lk__later(c->output.empty_ms, newest) + third;
}

/* When the session is given up without word from a server. */
static int64_t give_up_at(const lk_client *c)
{
  if (c->session.identity.id == 0 || c->connection.phase == LK_PHASE_LIVE ||
      c->connection.phase == LK_PHASE_ENDED || c->options.give_up_ms < 0)
    return LK_NEVER;
  int64_t ms = c->options.give_up_ms > 0
                   ? c->options.give_up_ms
                   : (int64_t)c->session.timeout_ms * 4 / 3;

  return lk__later(c->session.proven_ms, c->pings.extended_ms) + ms;
}

static void send_ping(lk_client *c)
{
  lk_writer w;

  if (!lk__ring_reserve(&c->pings.sent_ms) ||
      !lk__buf_reserve(&c->output.bytes, PING_LEN)) {
    lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__writer_init(&w, lk__buf_room(&c->output.bytes), PING_LEN);
  lk__writer_int(&w, PING_LEN - 4);
  lk__writer_int(&w, LK_XID_PING);
  lk__writer_int(&w, LK_OPCODE_PING);
  c->output.bytes.end += PING_LEN;
  c->pings.end = c->output.sent + lk__buf_len(&c->output.bytes);
  if (c->pings.sent_ms.count > 0)
    c->pings.extended_ms = c->now;
  memcpy(lk__ring_push(&c->pings.sent_ms), &c->now, sizeof c->now);
  lk__client_wake(c);
}

/* ---- moving to another server ------------------------------------------ */

static bool is_moving(const lk_client *c)
{
  return c->move.wanted && !c->close.begun;
}

/* Until then the client waits for a moment without outstanding replies. */
static int64_t stop_sending_at(const lk_client *c)
{
  return c->move.since_ms + c->session.timeout_ms / 6;
}

static int64_t leave_at(const lk_client *c)
{
  return lk__requests_answered(c, c->output.limit)
             ? c->now
             : c->move.since_ms + c->session.timeout_ms / 3;
}

static int64_t move_deadline(const lk_client *c)
{
  if (!is_moving(c))
    return LK_NEVER;
  return c->output.limit == UINT64_MAX
             ? lk__earlier(leave_at(c), stop_sending_at(c))
             : leave_at(c);
}

/* A move leaves no write in doubt. A client that always has requests
 * outstanding stops sending at some time, and moves when what was sent has its
 * replies: the rest was not executed. */
static void run_move(lk_client *c)
{
  if (!is_moving(c))
    return;
  if (c->output.limit == UINT64_MAX && c->now >= stop_sending_at(c))
    c->output.limit = c->output.sent + lk__buf_len(&c->output.bytes);
  if (c->now >= leave_at(c))
    lk__session_break(c, 0,
                      c->move.quorum_only
                          ? "moving to a server with a quorum"
                          : "moving to another server of the new list");
}

/* ---- a server that is about to close ----------------------------------- */

static int64_t rejected_deadline(const lk_client *c)
{
  if (c->rejected.op == 0)
    return LK_NEVER;
  /* the request itself is still in its place, or was the oldest */
  return lk__requests_answered(c, c->rejected.end - 1) ? c->now
                                                       : c->rejected.until_ms;
}

static void run_rejected(lk_client *c)
{
  char why[64];

  if (c->now < rejected_deadline(c))
    return;
  snprintf(why, sizeof why, "does not know %s",
           lk__opcode_info(c->rejected.op)->name);
  lk__session_break(c, LK_ERR_UNIMPLEMENTED, why);
}

static void run_live(lk_client *c)
{
  if (c->set_watches.failed)
    lk__session_break(c, LK_ERR_NO_MEMORY,
                      "out of memory for re-registering a watch");
  else if (c->now >= silence_end(c))
    lk__session_break(
        c, LK_ERR_CONNECTION_LOSS,
        "no bytes received for two thirds of the session timeout");
  else if (c->now >= ping_due(c))
    send_ping(c);
}

static void run_attempt(lk_client *c)
{
  char why[96];

  if (c->now < c->connection.attempt_end_ms)
    return;
  snprintf(
      why, sizeof why, "%s within %d ms",
      c->connection.phase == LK_PHASE_CONNECTING && c->tls != NULL
          ? "no TLS connection"
      : c->connection.phase == LK_PHASE_CONNECTING ? "no connection"
      : c->connection.phase == LK_PHASE_HANDSHAKE
          ? "connected, but no answer"
          : "the SASL exchange did not end",
      (int)(c->connection.attempt_end_ms - c->connection.attempt_began_ms));
  lk__session_break(c, LK_ERR_CONNECT, why);
}

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
  case LK_PHASE_SASL: run_attempt(c); break;
  case LK_PHASE_LIVE:
    run_set_watches_retry(c);
    run_rejected(c);
    run_move(c);
    lk__probe_run(c);
    if (c->connection.phase == LK_PHASE_LIVE)
      run_live(c);
    break;
  case LK_PHASE_ENDED: break;
  }
}

void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms)
{
  lk__heap_remove(&c->timers, &t->node);
  lk__heap_add(&c->timers, &t->node, at_ms);
  lk__client_wake(c);
}

void lk_timer_stop(lk_client *c, lk_timer *t)
{
  lk__heap_remove(&c->timers, &t->node);
}

static void run_timers(lk_client *c)
{
  for (int fires = 0; fires < MAX_FIRES; fires++) {
    lk_heap_node *first = c->timers.root;

    if (first == NULL || first->at > c->now || c->nesting.free_wanted)
      return;
    lk_timer *t = LK_OWNER(first, lk_timer, node);

    lk__heap_remove(&c->timers, first);
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    t->fire(c, t->arg);
  }
}

/* The servers may keep the session longer. They count its timeout from the last
 * bytes that they received, and round up to a tick; a timeout has two ticks at
 * least. */
static void abandon_session(lk_client *c)
{
  int64_t until = lk__later(c->session.proven_ms, c->output.sent_ms) +
                  (int64_t)c->session.timeout_ms * 3 / 2;

  if (until > c->session.abandoned_end_ms)
    c->session.abandoned_end_ms = until;
  lk__session_expire(c,
                     "no reply from any server within the limit (give_up_ms)");
}

void lk__client_run_due(lk_client *c)
{
  run_timers(c);
  if (c->requests.late.count > 0 || c->now >= lk__deadline_next(&c->deadlines))
    lk__requests_time_out(c);
  if (c->close.begun && c->session.final_err == 0 &&
      (c->now >= c->close.end_ms || lk__client_can_close(c)))
    lk__session_closed(c, lk__request_close_outcome(c, LK_ERR_DEADLINE));
  if (c->now >= give_up_at(c))
    abandon_session(c);
  run_phase(c);
}

int64_t lk__client_next_deadline(const lk_client *c)
{
  int64_t at = lk__earlier(lk__deadline_next(&c->deadlines), give_up_at(c));

  if (c->requests.late.count > 0)
    return c->now;
  if (c->timers.root != NULL)
    at = lk__earlier(at, c->timers.root->at);
  if (c->close.begun)
    at = lk__earlier(at, c->close.end_ms);
  if (c->connection.input_lost && c->nesting.depth == 0)
    return c->now;
  switch (c->connection.phase) {
  case LK_PHASE_PAUSE: return lk__earlier(at, c->connection.retry_ms);
  case LK_PHASE_CONNECTING:
  case LK_PHASE_HANDSHAKE:
  case LK_PHASE_SASL: return lk__earlier(at, c->connection.attempt_end_ms);
  case LK_PHASE_LIVE:
    if (c->set_watches.failed)
      return c->now;
    at = lk__earlier(at, lk__earlier(move_deadline(c), rejected_deadline(c)));
    at = lk__earlier(at, lk__earlier(c->probe.due_ms, c->set_watches.retry_ms));
    return lk__earlier(at, lk__earlier(silence_end(c), ping_due(c)));
  case LK_PHASE_ENDED: break;
  }
  return at;
}
