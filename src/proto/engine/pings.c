/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/pings.h"

#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/wire/opcode.h"

enum {
  LENGTH_FIELD = 4,           /* bytes */
  PING_LEN = LENGTH_FIELD + 8 /* a request header of two ints */
};

/* When the connection is ended because of silence, unless bytes arrive
 * before. */
static int64_t silence_end(const lk_client *c)
{
  return c->connection.received_ms + (int64_t)c->session.timeout_ms * 2 / 3;
}

/* When the next ping is due. */
static int64_t ping_due(const lk_client *c)
{
  int64_t third = c->session.timeout_ms / 3, newest_ping_ms;

  if (c->pings.sent_ms.count == 0)
    return c->output.all_sent_ms + third;
  newest_ping_ms = *(const int64_t *)lk__ring_at(&c->pings.sent_ms,
                                                 c->pings.sent_ms.count - 1);
  bool newest_was_sent_in_full = c->pings.end <= c->output.sent;
  bool bytes_arrive = c->connection.received_ms > newest_ping_ms;

  /* While the server sends nothing, at most one ping is outstanding. */
  if (!newest_was_sent_in_full || !bytes_arrive)
    return LK_NEVER;
  /* The reply to the outstanding ping comes behind the bytes that arrive. They
   * may be a long reply on a slow connection, which takes longer than the
   * session timeout. So another ping follows, to extend the session. */
  return lk__later(c->output.all_sent_ms, newest_ping_ms) + third;
}

/* Returns 0 or LK_ERR_NO_MEMORY. */
static int send_ping(lk_client *c)
{
  lk_writer w;

  if (!lk__ring_reserve(&c->pings.sent_ms) ||
      !lk__buf_reserve(&c->output.bytes, PING_LEN))
    return LK_ERR_NO_MEMORY;
  lk__writer_init(&w, lk__buf_room(&c->output.bytes), PING_LEN);
  lk__writer_int(&w, PING_LEN - LENGTH_FIELD);
  lk__writer_int(&w, LK_XID_PING);
  lk__writer_int(&w, LK_OPCODE_PING);
  c->output.bytes.end += PING_LEN;
  c->pings.end = c->output.sent + lk__buf_len(&c->output.bytes);
  if (c->pings.sent_ms.count > 0)
    c->pings.overlapping_ping_ms = c->now;
  *(int64_t *)lk__ring_push(&c->pings.sent_ms) = c->now;
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
