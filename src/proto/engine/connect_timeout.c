/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/connect_timeout.h"

#include "proto/engine/client.h"

#include <stdio.h>

enum { LEAST_ATTEMPT_MS = 250 };

/* The attempts of a whole round may take two thirds of the session timeout. */
int64_t lk__connect_timeout_usual_ms(const lk_client *c)
{
  int64_t ms = (int64_t)c->session.timeout_ms * 2 / 3 /
               (int64_t)lk__hosts_count_endpoints(&c->hosts);

  return lk__later(ms, LEAST_ATTEMPT_MS);
}

/* When the servers may expire the session if it gets no connection; LK_NEVER:
 * there is no session. */
static int64_t session_end(const lk_client *c)
{
  return c->session.identity.id == 0
             ? LK_NEVER
             : lk__later(c->session.proven_ms, c->pings.overlapping_ping_ms) +
                   c->session.timeout_ms;
}

/* How long this attempt may take. The attempts of a round share the time until
 * the session ends, so that each server is tried before that. */
static int64_t attempt_limit_ms(const lk_client *c)
{
  int64_t count = (int64_t)lk__hosts_count_endpoints(&c->hosts);
  int64_t usual_ms = lk__connect_timeout_usual_ms(c);
  int64_t least_ms = lk__later(usual_ms / 2, LEAST_ATTEMPT_MS);
  int64_t left_ms = session_end(c) - c->now;

  if (count == 1 || left_ms <= 0)
    return usual_ms; /* a shorter attempt would not help another one */
  int64_t share_ms = left_ms / count;

  return lk__earlier(usual_ms, lk__later(share_ms, least_ms));
}

/* How long it may take to be connected, without the handshake, if a holder
 * needs a reply soon: its share of the time until then. One share more than
 * there are servers lets the client return to the server that it has left. */
static int64_t connected_limit_ms(const lk_client *c)
{
  int64_t left_ms = c->silence.needed_ms - c->now;
  int64_t untried =
      (int64_t)(lk__hosts_count_endpoints(&c->hosts) - c->hosts.tried_count);

  if (c->silence.needed_ms == LK_NEVER || left_ms <= 0)
    return LK_NEVER;
  return lk__later(left_ms / (untried + 1), LEAST_ATTEMPT_MS);
}

void lk__connect_timeout_begin(lk_client *c)
{
  int64_t limit_ms = lk__earlier(attempt_limit_ms(c), connected_limit_ms(c));

  c->connection.attempt_began_ms = c->now;
  c->connection.attempt_end_ms = c->now + limit_ms;
}

/* A server that has accepted the connection can be one that is busy. A
 * handshake that is given up can also cost the next connection: when the server
 * comes to it, the session moves there (ZOOKEEPER-2886). */
void lk__connect_timeout_begin_handshake(lk_client *c)
{
  if (c->silence.needed_ms != LK_NEVER)
    c->connection.attempt_end_ms =
        c->connection.attempt_began_ms + attempt_limit_ms(c);
}

void lk__connect_timeout_shorten(lk_client *c)
{
  int64_t end_ms = c->now + attempt_limit_ms(c);

  if (end_ms >= c->connection.attempt_end_ms)
    return;
  c->connection.attempt_end_ms = end_ms;
  lk__client_wake(c);
}

static const char *what_is_missing(const lk_client *c)
{
  switch (c->connection.phase) {
  case LK_PHASE_CONNECTING:
    return c->tls == NULL ? "no connection" : "no TLS connection";
  case LK_PHASE_HANDSHAKE: return "connected, but no answer";
  case LK_PHASE_SASL: return "the SASL exchange did not end";
  case LK_PHASE_PAUSE:
  case LK_PHASE_LIVE:
  case LK_PHASE_ENDED: break;
  }
  return "no connection"; /* not reached: no connect timeout runs then */
}

void lk__connect_timeout_text(const lk_client *c, char *out, size_t size)
{
  snprintf(
      out, size, "%s within %d ms", what_is_missing(c),
      (int)(c->connection.attempt_end_ms - c->connection.attempt_began_ms));
}
