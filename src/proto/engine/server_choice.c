/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/server_choice.h"

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
  /* lk__requests_have_replies(c, end - 1) means that all requests before the
   * rejected one have their replies. The rejected request itself, whose last
   * byte is at `end`, may still be in the ring and must not count. */
  bool earlier_have_replies = lk__requests_have_replies(c, c->rejected.end - 1);

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
                             : "moving to another server of the new list";
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
  lk_want want = {.attempt = c->probe.number};

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
