/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/server_leave.h"

#include <stdio.h>

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"
#include "proto/engine/connection.h"
#include "proto/engine/hosts.h"
#include "proto/engine/requests.h"
#include "proto/wire/opcode.h"

/* ---- rejected requests --------------------------------------------------- */

void lk__request_rejected(lk_client *c, const lk_request *r)
{
  lk__request_note_unsupported(c, r->op);
  if (c->rejected.op != 0)
    return;
  /* Send nothing more, not even the bytes that are in the output already: the
   * server closes the connection, so a write sent now would be in doubt. */
  c->rejected.op = r->op;
  c->rejected.end = r->end;
  c->rejected.until_ms = c->now + c->session.timeout_ms / 3;
  if (c->output.limit > c->output.sent)
    c->output.limit = c->output.sent;
  lk__client_wake(c);
}

int64_t lk__rejected_deadline(const lk_client *c)
{
  if (c->rejected.op == 0)
    return LK_NEVER;
  bool earlier_have_replies = lk__requests_have_replies(c, c->rejected.end);

  return earlier_have_replies ? c->now : c->rejected.until_ms;
}

void lk__rejected_text(const lk_client *c, char *out, size_t size)
{
  snprintf(out, size, "does not know %s",
           lk__opcode_info(c->rejected.op)->name);
}

/* ---- moves to another server --------------------------------------------- */

void lk__move_begin(lk_client *c)
{
  if (!c->move.wanted)
    c->move.since_ms = c->now;
  c->move.wanted = true;
  lk__probe_stop(c);
  /* The connection is not ended here: that happens when the driver next calls
   * the client. */
  lk__client_wake(c);
}

static bool is_moving(const lk_client *c)
{
  return c->move.wanted && !c->close.begun;
}

static bool output_is_limited(const lk_client *c)
{
  return c->output.limit != UINT64_MAX;
}

/* When the client stops sending, if it has not left before. */
static int64_t stop_sending_at(const lk_client *c)
{
  return c->move.since_ms + c->session.timeout_ms / 6;
}

/* When the client leaves: now, if all requests within the limit of the output
 * have their replies. */
static int64_t leave_at(const lk_client *c)
{
  return lk__requests_have_replies(c, c->output.limit)
             ? c->now
             : c->move.since_ms + c->session.timeout_ms / 3;
}

int64_t lk__move_deadline(const lk_client *c)
{
  if (!is_moving(c))
    return LK_NEVER;
  return !output_is_limited(c) ? lk__earlier(leave_at(c), stop_sending_at(c))
                               : leave_at(c);
}

/* A move should leave no write in doubt. So a client that always has requests
 * outstanding stops sending after a sixth of the session timeout, and moves
 * when all requests that were sent have their replies. The other requests were
 * not executed. After a third of the session timeout the client moves in any
 * case. Returns whether the client must leave now.
 */
bool lk__move_run(lk_client *c)
{
  if (!is_moving(c))
    return false;
  if (!output_is_limited(c) && c->now >= stop_sending_at(c))
    /* The requests that are in the output already are still sent. */
    c->output.limit = c->output.sent + lk__buf_len(&c->output.bytes);
  return c->now >= leave_at(c);
}

const char *lk__move_text(const lk_client *c)
{
  return c->move.quorum_only ? "moving to a server with a quorum"
                             : "moving to another server";
}

/* ---- probes for a quorum ------------------------------------------------- */

enum { FIRST_PAUSE_MS = 200, LONGEST_PAUSE_MS = 60000 };

/* The index of the server that is asked now. A round begins behind the server
 * in turn, that of the connection, which is asked last. It is not left out,
 * since its name may have addresses of other servers. */
static size_t probed_server(const lk_client *c)
{
  return (c->hosts.in_turn + 1 + c->probe.asked) % c->hosts.count;
}

/* Pause before the next round. The pause has jitter, so that many clients do
 * not begin the next round at the same time. */
static void pause_probing(lk_client *c)
{
  int64_t pause = c->probe.pause_ms;
  uint32_t r;

  c->hooks.random(c->hooks.arg, &r, sizeof r);
  c->probe.number = 0;
  c->probe.asked = 0;
  int64_t jitter = (int64_t)(r % (uint32_t)(pause / 2 + 1));

  c->probe.due_ms = c->now + pause - jitter;
  c->probe.pause_ms = lk__earlier(pause * 2, LONGEST_PAUSE_MS);
}

void lk__probe_begin(lk_client *c)
{
  c->probe.pause_ms = FIRST_PAUSE_MS;
  pause_probing(c);
  lk__client_wake(c);
}

void lk__probe_stop(lk_client *c)
{
  c->probe.number = 0;
  c->probe.due_ms = LK_NEVER;
}

static void start_probe(lk_client *c)
{
  c->probe.number = ++c->probe.last_number;
  /* Without a reply until then, the next server is asked. */
  c->probe.due_ms = c->now + lk__connect_timeout_share_ms(c);
}

void lk__probe_next_server(lk_client *c)
{
  if (++c->probe.asked < c->hosts.count)
    start_probe(c);
  else
    pause_probing(c);
}

void lk__probe_run(lk_client *c)
{
  if (c->probe.number == 0)
    start_probe(c);
  else
    lk__probe_next_server(c);
  lk__client_wake(c);
}

lk_want lk__probe_want(const lk_client *c)
{
  lk_want want = {.size = sizeof want, .attempt = c->probe.number};

  if (c->probe.number != 0) {
    const lk_host *h = &c->hosts.items[probed_server(c)];

    want.host = h->name;
    want.port = h->port;
  }
  return want;
}

void lk__probe_select(lk_client *c)
{
  c->hosts.in_turn = probed_server(c);
  c->hosts.address_index = 0;
  c->hosts.address_count = 0;
  c->hosts.address_total = 0;
  c->move.quorum_only = true;
}

/* ---- silent servers: progress -------------------------------------------- */

enum {
  LEAST_WAIT_MS = 250, /* for a reply that a holder needs */
  MAX_STALLS = 3       /* the limit has grown to four session timeouts then */
};
/* The slowest connection that is not left because of a long request: 1 Mbit/s.
 */
enum { BYTES_PER_MS = 125 };
/* Losses in a row, at requests of one kind, that are reported. */
enum { LOSSES_REPORTED = 5 };

void lk__silence_init(lk_engine_silence *s)
{
  s->look_ms = LK_NEVER;
  s->needed_ms = LK_NEVER;
  s->left_ms = INT64_MIN;
  s->left_server = SIZE_MAX;
}

void lk__silence_begin(lk_client *c)
{
  c->silence.progress_ms = c->now;
  c->silence.look_ms = LK_NEVER;
}

void lk__silence_note_progress(lk_client *c)
{
  c->silence.progress_ms = c->now;
  if (c->silence.look_ms == LK_NEVER)
    return;
  c->silence.look_ms = LK_NEVER;
  c->silence.needed_ms = LK_NEVER;
}

void lk__silence_note_bytes(lk_client *c, size_t len)
{
  enum { REPLY_TO_PING_LEN = 20 };

  if (len > REPLY_TO_PING_LEN)
    lk__silence_note_progress(c);
}

void lk__silence_note_reply(lk_client *c, int32_t op)
{
  c->silence.needed_ms = LK_NEVER;
  if (op != c->silence.op)
    return;
  c->silence.op = 0;
  c->silence.stalls = 0;
}

/* ---- silent servers: the oldest request ---------------------------------- */

/* Replies come in the order of the requests, so the oldest one tells how long
 * the server has not replied. */

/* Since when the server could have replied to this request: it was sent, those
 * before it have their replies, and its bytes have arrived. */
static int64_t waiting_since(const lk_client *c, const lk_request *oldest)
{
  int64_t transfer_ms = (int64_t)(oldest->len / BYTES_PER_MS);

  return lk__later(c->silence.progress_ms, oldest->sent_ms) + transfer_ms;
}

/* A client that closes, or that moves in any case, has limits of its own. */
static bool may_leave(const lk_client *c)
{
  return !c->close.begun && !c->move.wanted && c->rejected.op == 0;
}

/* ---- silent servers: suspicion ------------------------------------------- */

/* Between two looks the driver reads what the kernel has. The jitter lets the
 * clients of a server leave it at different times. */
static void begin_suspicion(lk_client *c, bool for_holder)
{
  int32_t timeout_ms = c->session.timeout_ms;
  uint32_t r;

  c->hooks.random(c->hooks.arg, &r, sizeof r);
  c->silence.look_ms =
      c->now + timeout_ms / 32 + (int64_t)(r % (uint32_t)(timeout_ms / 64 + 1));
  c->silence.for_holder = for_holder;
}

/* How long a reply that a holder needs may take: longer than the last one. */
static int64_t holder_wait_ms(const lk_client *c)
{
  int64_t wait_ms = lk__later(c->session.timeout_ms / 8, LEAST_WAIT_MS);

  return lk__later(wait_ms, 2 * lk__evidence_round_trip_ms(&c->evidence));
}

void lk__silence_suspect(lk_client *c, int64_t needed_ms)
{
  lk_engine_silence *s = &c->silence;
  const lk_request *oldest = lk__requests_oldest(&c->requests);
  bool left_lately =
      s->left_ms != INT64_MIN && c->now < s->left_ms + c->session.timeout_ms;

  if (c->connection.phase != LK_PHASE_LIVE || !may_leave(c) || oldest == NULL ||
      s->look_ms != LK_NEVER || left_lately ||
      lk__hosts_count_endpoints(&c->hosts) == 1 ||
      c->now < waiting_since(c, oldest) + holder_wait_ms(c))
    return;
  s->needed_ms = needed_ms;
  begin_suspicion(c, true);
  lk__client_wake(c);
}

/* How long any client waits for a reply, also if pings are answered. The limit
 * doubles each time at which it ends a connection, so that clients do not
 * wander while a quorum stalls. It is as at first again when a request like the
 * one that was stuck gets its reply: the replies to reads say nothing about
 * writes.
 */
static int64_t stall_limit_ms(const lk_client *c)
{
  int64_t limit_ms = (int64_t)c->session.timeout_ms * 2 / 3
                     << c->silence.stalls;

  return lk__earlier(limit_ms, (int64_t)c->session.timeout_ms * 4);
}

static int64_t stall_end(const lk_client *c)
{
  const lk_request *oldest = lk__requests_oldest(&c->requests);

  return oldest == NULL || !may_leave(c)
             ? LK_NEVER
             : waiting_since(c, oldest) + stall_limit_ms(c);
}

int64_t lk__silence_deadline(const lk_client *c)
{
  return c->silence.look_ms != LK_NEVER ? c->silence.look_ms : stall_end(c);
}

/* ---- silent servers: leaving --------------------------------------------- */

bool lk__silence_run(lk_client *c)
{
  lk_engine_silence *s = &c->silence;
  int32_t timeout_ms = c->session.timeout_ms;

  if (s->look_ms == LK_NEVER) {
    if (c->now >= stall_end(c))
      begin_suspicion(c, false);
    return false;
  }
  if (c->now < s->look_ms)
    return false;
  /* The process has stood still, and the server may have replied meanwhile. */
  if (c->now > s->look_ms + timeout_ms / 64) {
    s->look_ms = c->now + timeout_ms / 32;
    return false;
  }
  if (s->for_holder) {
    s->left_ms = c->now;
    s->left_server = c->hosts.in_use;
  } else if (s->stalls < MAX_STALLS) {
    s->stalls++;
  }
  return true;
}

/* The others can be in an election, and refuse clients for a moment. Then an
 * attempt at the silent server would take the time until one of them leads. Of
 * two servers, the silent one is tried again: the other can be down for good.
 */
bool lk__silence_avoids_server(const lk_client *c)
{
  const lk_engine_silence *s = &c->silence;

  return s->needed_ms != LK_NEVER && c->now < s->needed_ms &&
         c->hosts.count > 2 && c->hosts.in_turn == s->left_server;
}

void lk__silence_text(const lk_client *c, char *out, size_t size)
{
  const lk_request *oldest = lk__requests_oldest(&c->requests);

  snprintf(out, size, "no reply to %s for %d ms",
           oldest == NULL ? "a request" : lk__opcode_info(oldest->op)->name,
           (int)(c->now - (oldest == NULL ? c->silence.progress_ms
                                          : lk__later(c->silence.progress_ms,
                                                      oldest->sent_ms))));
}

/* ---- silent servers: losses in a row ------------------------------------- */

/* The reason of the loss, which was stored before, gets the name of the request
 * from the fifth loss on. The fifth one is a warning. */
static void report_losses(lk_client *c)
{
  const lk_engine_silence *s = &c->silence;
  size_t len = strlen(c->last_error.text);

  snprintf(c->last_error.text + len, sizeof c->last_error.text - len,
           "; no reply to %s, %u times in a row", lk__opcode_info(s->op)->name,
           s->losses);
  if (s->losses == LOSSES_REPORTED)
    lk__client_logf(c, LK_LOG_WARNING, LK_ERR_CONNECTION_LOSS, "%s",
                    c->last_error.text);
}

static void count_loss(lk_client *c, int32_t op)
{
  lk_engine_silence *s = &c->silence;

  s->losses = op != 0 && op == s->op ? s->losses + 1 : 1;
  s->op = op;
  if (op == 0)
    s->stalls = 0;
  else if (s->losses >= LOSSES_REPORTED)
    report_losses(c);
}

bool lk__silence_note_loss(lk_client *c, int err)
{
  lk_engine_silence *s = &c->silence;
  const lk_request *oldest = lk__requests_oldest(&c->requests);
  bool holder_waits = s->look_ms != LK_NEVER && s->for_holder;

  /* With another error, the server has replied, or could not. */
  count_loss(c,
             err == LK_ERR_CONNECTION_LOSS && oldest != NULL ? oldest->op : 0);
  s->look_ms = LK_NEVER;
  return holder_waits;
}
