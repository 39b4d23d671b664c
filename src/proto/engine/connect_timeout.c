/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/connect_timeout.h"

#include "proto/engine/client.h"

#include <stdio.h>

enum {
  LEAST_ATTEMPT_MS = 250,
  LOOKUP_MS = 500,         /* a driver may wait 250 ms for a name server */
  FIRST_CONNECT_MS = 1000, /* of the first attempt at a server, at most */
  FIRST_HANDSHAKE_MS = 1000,
  MOST_DOUBLINGS = 6,
  /* The addresses of a name are tried one after the other and at the same time,
     the third one this long after the first. */
  LAST_START_MS = 750
};

/* ---- the share of an attempt --------------------------------------------- */

/* The attempts of a whole round may take two thirds of the session timeout. */
int64_t lk__connect_timeout_share_ms(const lk_client *c)
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

/* The share of this attempt. The attempts of a round share the time until the
 * session ends, so that each server is tried before that. */
static int64_t share_before_session_end_ms(const lk_client *c)
{
  int64_t count = (int64_t)lk__hosts_count_endpoints(&c->hosts);
  int64_t usual_ms = lk__connect_timeout_share_ms(c);
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
static int64_t holder_share_ms(const lk_client *c)
{
  int64_t left_ms = c->silence.needed_ms - c->now;
  int64_t untried =
      (int64_t)(lk__hosts_count_endpoints(&c->hosts) - c->hosts.tried_count);

  if (c->silence.needed_ms == LK_NEVER || left_ms <= 0)
    return LK_NEVER;
  return lk__later(left_ms / (untried + 1), LEAST_ATTEMPT_MS);
}

/* ---- the limits of its parts --------------------------------------------- */

/* The first pass over the servers does not wait long for any of them, and each
 * further pass waits twice as long, up to the share. A limit is never shorter
 * than twice the time that the last connection took. With one endpoint nothing
 * is gained by an early end. */
static int64_t limit_of_pass_ms(const lk_client *c, int64_t first_ms,
                                int64_t last_took_ms)
{
  int64_t share_ms = share_before_session_end_ms(c);
  unsigned doublings = c->connection.passes < MOST_DOUBLINGS
                           ? c->connection.passes
                           : MOST_DOUBLINGS;
  int64_t ms = lk__later(first_ms << doublings, 2 * last_took_ms);

  if (lk__hosts_count_endpoints(&c->hosts) == 1)
    return share_ms;
  return lk__earlier(share_ms, lk__later(ms, LEAST_ATTEMPT_MS));
}

int64_t lk__connect_timeout_tcp_ms(const lk_client *c)
{
  int64_t first_ms = lk__earlier(FIRST_CONNECT_MS, c->session.timeout_ms / 8);

  return limit_of_pass_ms(c, first_ms, c->connection.connecting_ms);
}

static int64_t handshake_limit_ms(const lk_client *c)
{
  int64_t first_ms = lk__later(FIRST_HANDSHAKE_MS, c->session.timeout_ms / 8);

  return limit_of_pass_ms(c, first_ms, c->connection.handshake_ms);
}

/* The handshake of TLS and that of ZooKeeper have one limit. The driver does
 * not report when TCP is connected and TLS begins. */
static int64_t connecting_limit_ms(const lk_client *c)
{
  int64_t tls_ms = c->tls == NULL ? 0 : handshake_limit_ms(c);

  return lk__earlier(
      lk__connect_timeout_tcp_ms(c) + tls_ms,
      lk__later(share_before_session_end_ms(c), lk__connect_timeout_tcp_ms(c)));
}

/* If the name server is slow, the lookups of all names are under way soon. A
 * driver keeps the results for the next pass. */
static int64_t lookup_limit_ms(const lk_client *c)
{
  return lk__hosts_count_endpoints(&c->hosts) == 1
             ? share_before_session_end_ms(c)
             : LOOKUP_MS;
}

/* ---- deadlines ----------------------------------------------------------- */

static void set_attempt_end(lk_client *c, int64_t end_ms)
{
  if (end_ms != c->connection.attempt_end_ms)
    lk__client_wake(c);
  c->connection.attempt_end_ms = end_ms;
}

/* The driver looks up a name for the first attempt at its addresses. */
static bool begins_with_lookup(const lk_client *c)
{
  return c->hosts.address_index == 0 &&
         !lk__host_is_address(lk__hosts_current(&c->hosts)->name);
}

void lk__connect_timeout_begin(lk_client *c)
{
  int64_t limit_ms =
      begins_with_lookup(c)
          ? lk__earlier(lookup_limit_ms(c),
                        lk__later(holder_share_ms(c), LOOKUP_MS))
          : lk__earlier(connecting_limit_ms(c), holder_share_ms(c));

  c->connection.attempt_began_ms = c->now;
  c->connection.resolved_ms = LK_NEVER;
  c->connection.attempt_end_ms = c->now + limit_ms;
}

void lk__connect_timeout_note_addresses(lk_client *c)
{
  int64_t limit_ms = connecting_limit_ms(c);

  if (c->connection.resolved_ms == LK_NEVER) {
    c->connection.resolved_ms = c->now;
    c->connection.attempt_began_ms = c->now;
  }
  int64_t last_end_ms = c->connection.resolved_ms + limit_ms + LAST_START_MS;

  limit_ms = lk__earlier(limit_ms, holder_share_ms(c));
  set_attempt_end(c, lk__earlier(c->now + limit_ms, last_end_ms));
}

/* The attempt as a whole has its share, whatever its parts took. */
void lk__connect_timeout_begin_handshake(lk_client *c)
{
  int64_t share_end_ms =
      c->connection.attempt_began_ms + share_before_session_end_ms(c);
  int64_t end_ms =
      lk__earlier(c->now + handshake_limit_ms(c),
                  lk__later(share_end_ms, c->now + LEAST_ATTEMPT_MS));

  c->connection.connecting_ms = c->now - c->connection.attempt_began_ms;
  set_attempt_end(c, end_ms);
}

void lk__connect_timeout_note_handshake(lk_client *c)
{
  c->connection.handshake_ms = c->now - c->connection.handshake_sent_ms;
}

static bool is_looking_up(const lk_client *c)
{
  return c->connection.phase == LK_PHASE_CONNECTING &&
         c->connection.resolved_ms == LK_NEVER && begins_with_lookup(c);
}

int lk__connect_timeout_err(const lk_client *c)
{
  return is_looking_up(c) ? LK_ERR_RESOLVE : LK_ERR_CONNECT;
}

static const char *what_is_missing(const lk_client *c)
{
  if (is_looking_up(c))
    return "the name was not resolved";
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
