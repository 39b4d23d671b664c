/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/pings.h"

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

enum { PING_LEN = 12 };

/* When the connection is ended, unless bytes arrive before. */
static int64_t silence_end(const lk_client *c)
{
  return c->connection.received_ms + (int64_t)c->session.timeout_ms * 2 / 3;
}

/* When the next ping is sent: a third of the session timeout after the client
 * last sent something. While the server sends nothing, at most one ping is
 * outstanding. While bytes arrive, another ping may follow, since the reply to
 * the first one comes behind these bytes: a long reply on a slow connection can
 * take longer than the session timeout. No ping follows before the last one was
 * sent in full. */
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

/* Returns 0 or LK_ERR_NO_MEMORY. */
static int send_ping(lk_client *c)
{
  lk_writer w;

  if (!lk__ring_reserve(&c->pings.sent_ms) ||
      !lk__buf_reserve(&c->output.bytes, PING_LEN))
    return LK_ERR_NO_MEMORY;
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
  return 0;
}

int64_t lk__pings_deadline(const lk_client *c)
{
  return lk__earlier(silence_end(c), ping_due(c));
}

int lk__pings_run(lk_client *c)
{
  if (c->now >= silence_end(c))
    return LK_ERR_CONNECTION_LOSS;
  return c->now >= ping_due(c) ? send_ping(c) : 0;
}
