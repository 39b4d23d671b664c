/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/engine/connect_timeout.h"

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
