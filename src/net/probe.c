/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/probe.h"

#include <string.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/driver.h"

static const char probe_request[] = LK_PROBE;

/* Without the NUL at the end. */
enum { PROBE_REQUEST_LEN = sizeof probe_request - 1 };

struct lk_probe_connection {
  lk_connection *connection; /* that gets the reply */
  lk_driver_shared *shared;  /* of `connection` */
  uint64_t attempt;
  uint16_t port;
  lk_lookup lookup;
  lk_watched_transport transport;
  bool connected;  /* TCP, and TLS if used */
  size_t sent;     /* bytes of probe_request */
  size_t received; /* bytes of `reply` */
  char reply[LK_PROBE_ROOM];
  char host[];
};

/* Report the reply to the connection, which frees the probe. */
static void probe_complete(lk_probe_connection *p, size_t len)
{
  lk__connection_on_probe_reply(p->connection, p->reply, len);
}

static void probe_fail(lk_probe_connection *p)
{
  const size_t no_reply = 0;

  probe_complete(p, no_reply);
}

/* A step returned `flow`: wait for the descriptor, or fail. */
static void probe_await(lk_probe_connection *p, lk_flow flow)
{
  if (!lk__watched_transport_watch_for(&p->transport, flow))
    probe_fail(p);
}

/* `p->reply` is large enough for every reply to a probe. If it is full, the
   server is sending something else, and the rest is not read. */
static void probe_receive(lk_probe_connection *p)
{
  const lk_watched_transport *s = &p->transport;

  while (p->received < sizeof p->reply) {
    size_t got;
    lk_flow flow = s->type->recv(s->object, p->reply + p->received,
                                 sizeof p->reply - p->received, &got);

    if (flow == LK_FLOW_END)
      break;
    if (flow != LK_FLOW_DONE) {
      probe_await(p, flow);
      return;
    }
    p->received += got;
  }
  probe_complete(p, p->received);
}

/* Send the rest of the request, and receive when all of it is sent. */
static void probe_send(lk_probe_connection *p)
{
  const lk_watched_transport *s = &p->transport;

  while (p->sent < PROBE_REQUEST_LEN) {
    size_t sent;
    lk_flow flow = s->type->send(s->object, probe_request + p->sent,
                                 PROBE_REQUEST_LEN - p->sent, &sent);

    p->sent += sent;
    if (flow != LK_FLOW_DONE) {
      probe_await(p, flow);
      return;
    }
  }
  probe_receive(p);
}

/* A step of connecting returned `flow`: send the request, wait, or fail. */
static void probe_continue_connecting(lk_probe_connection *p, lk_flow flow)
{
  p->connected = flow == LK_FLOW_DONE;
  if (p->connected)
    probe_send(p);
  else
    probe_await(p, flow);
}

static void on_probe_events(lk_loop_io *io, int events)
{
  lk_probe_connection *p = LK_OWNER(io, lk_probe_connection, transport.io);

  if (lk__driver_shared_in_child(p->shared))
    return;
  if ((events & LK_LOOP_ERROR) != 0)
    probe_fail(p);
  else if (p->connected)
    probe_send(p);
  else
    probe_continue_connecting(
        p, p->transport.type->handshake(p->transport.object));
}

static void probe_connect(lk_probe_connection *p, const lk_address *address)
{
  const lk_transport_target to = {.address = address,
                                  .port = p->port,
                                  .host = p->host,
                                  .tls = lk_client_tls(p->connection->client)};

  probe_continue_connecting(p,
                            lk__watched_transport_connect(&p->transport, &to));
}

/* The probe takes one of the addresses at random, so that the probes that
   follow find a server with a quorum, even if another server behind the same
   name has none. */
static void on_probe_lookup(lk_lookup *l, const lk_address *list, size_t count,
                            const char *why)
{
  lk_probe_connection *p = LK_OWNER(l, lk_probe_connection, lookup);

  (void)why;
  if (lk__driver_shared_in_child(p->shared))
    return;
  lk__lookup_cancel(l); /* remembered addresses suffice */
  if (count == 0)
    probe_fail(p);
  else
    probe_connect(p, lk__address_pick(list, count, p->shared->fork_check));
}

lk_probe_connection *lk__probe_connection_new(lk_connection *n,
                                              const lk_want *want)
{
  lk_driver_shared *x = n->shared;
  size_t size = strlen(want->host) + 1;
  lk_probe_connection *p = lk__mem_new(&x->mem, sizeof *p + size);

  if (p == NULL)
    return NULL;
  p->transport.io.on_events = on_probe_events;
  if (!lk__watched_transport_init(&p->transport, x->loop, n->transport->type,
                                  &x->mem)) {
    lk__mem_free(&x->mem, p);
    return NULL;
  }
  p->connection = n;
  p->shared = x;
  p->attempt = want->attempt;
  p->port = want->port;
  memcpy(p->host, want->host, size);
  lk__list_init(&p->lookup.link);
  p->lookup.done = on_probe_lookup;
  return p;
}

void lk__probe_connection_start(lk_probe_connection *p)
{
  lk_address literal;

  if (lk__address_parse(&literal, p->host))
    probe_connect(p, &literal);
  else if (!lk__resolver_lookup(p->shared->resolver, &p->lookup, p->host))
    probe_fail(p);
}

uint64_t lk__probe_connection_attempt(const lk_probe_connection *p)
{
  return p->attempt;
}

void lk__probe_connection_free(lk_probe_connection *p)
{
  if (p == NULL)
    return;

  const lk_mem *mem = &p->shared->mem;

  lk__lookup_cancel(&p->lookup);
  lk__watched_transport_close(&p->transport);
  lk__watched_transport_free(&p->transport, mem);
  lk__mem_free(mem, p);
}
