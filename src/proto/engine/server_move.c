/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/server_move.h"

#include "proto/engine/client.h"

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
