/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/silent_server.h"

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

#include <stdio.h>

enum {
  LEAST_WAIT_MS = 250, /* for a reply that a holder needs */
  MAX_STALLS = 3       /* the limit has grown to four session timeouts then */
};
/* The slowest connection that is not left because of a long request: 1 Mbit/s.
 */
enum { BYTES_PER_MS = 125 };
/* Losses in a row, at requests of one kind, that are reported. */
enum { LOSSES_REPORTED = 5 };

/* ---- progress ----------------------------------------------------------- */

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
  c->silence.needed_ms = LK_NEVER;
}

void lk__silence_note_progress(lk_client *c)
{
  c->silence.progress_ms = c->now;
  c->silence.look_ms = LK_NEVER;
}

void lk__silence_note_bytes(lk_client *c, size_t len)
{
  enum { REPLY_TO_PING_LEN = 20 };

  if (len > REPLY_TO_PING_LEN)
    lk__silence_note_progress(c);
}

void lk__silence_note_reply(lk_client *c, int32_t op)
{
  if (op != c->silence.op)
    return;
  c->silence.op = 0;
  c->silence.stalls = 0;
}

/* ---- the oldest request ------------------------------------------------- */

/* Replies come in the order of the requests, so the oldest one tells how long
 * the server has not replied. NULL: there is none. */
static const lk_request *oldest_request(const lk_client *c)
{
  return c->requests.sent.count == 0 ? NULL : lk__ring_at(&c->requests.sent, 0);
}

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

/* ---- suspicion ---------------------------------------------------------- */

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
  const lk_request *oldest = oldest_request(c);
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
  const lk_request *oldest = oldest_request(c);

  return oldest == NULL || !may_leave(c)
             ? LK_NEVER
             : waiting_since(c, oldest) + stall_limit_ms(c);
}

int64_t lk__silence_deadline(const lk_client *c)
{
  return c->silence.look_ms != LK_NEVER ? c->silence.look_ms : stall_end(c);
}

/* ---- leaving ------------------------------------------------------------ */

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
  const lk_request *oldest = oldest_request(c);

  snprintf(out, size, "no reply to %s for %d ms",
           oldest == NULL ? "a request" : lk__opcode_info(oldest->op)->name,
           (int)(c->now - (oldest == NULL ? c->silence.progress_ms
                                          : lk__later(c->silence.progress_ms,
                                                      oldest->sent_ms))));
}

/* ---- requests that never get a reply ------------------------------------ */

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
  const lk_request *oldest = oldest_request(c);
  bool holder_waits = s->look_ms != LK_NEVER && s->for_holder;

  /* With another error, the server has replied, or could not. */
  count_loss(c,
             err == LK_ERR_CONNECTION_LOSS && oldest != NULL ? oldest->op : 0);
  s->look_ms = LK_NEVER;
  if (!holder_waits)
    s->needed_ms = LK_NEVER;
  return holder_waits;
}
