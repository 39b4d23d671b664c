/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Connections one after the other, over the transport of the benchmark's
 * clients. On each connection the four-letter word "srvr" is sent; the server
 * replies and closes the connection. */

static const char word[] = {'s', 'r', 'v', 'r'};

typedef struct connects {
  bench *b;
  const lk_transport_type *type;
  lk_transport *t;
  struct sockaddr_storage address;
  lk_endpoint to;
  char host[64];
  ev_io io;
  bool connected, resume;
  size_t made, answered;
} connects;

static void begin_next(connects *c);

static void wait_for(connects *c, int events)
{
  ev_io_stop(c->b->loop, &c->io);
  ev_io_set(&c->io, c->t->fd, events);
  ev_io_start(c->b->loop, &c->io);
}

static void end_connection(connects *c)
{
  if (c->answered == 0)
    bench_fail("no answer", LK_ERR_CONNECTION_LOSS);
  ev_io_stop(c->b->loop, &c->io);
  c->type->close(c->t);
  if (!c->resume && c->type->end != NULL)
    c->type->end(c->t);
  c->made++;
  begin_next(c);
}

static void ask_server(connects *c)
{
  size_t done;

  c->connected = true;
  if (c->type->send(c->t, word, sizeof word, &done) != LK_FLOW_DONE)
    bench_fail("cannot send", LK_ERR_CONNECTION_LOSS);
  wait_for(c, EV_READ);
}

static void advance(connects *c, lk_flow flow)
{
  switch (flow) {
  case LK_FLOW_READ: wait_for(c, EV_READ); break;
  case LK_FLOW_WRITE: wait_for(c, EV_WRITE); break;
  case LK_FLOW_DONE: ask_server(c); break;
  case LK_FLOW_END:
  case LK_FLOW_FAILED: bench_fail(c->t->why, c->t->err);
  }
}

static void receive(connects *c)
{
  char room[4096];
  size_t got;

  do {
    switch (c->type->recv(c->t, room, sizeof room, &got)) {
    case LK_FLOW_DONE: c->answered += got; break;
    case LK_FLOW_END: end_connection(c); return;
    case LK_FLOW_FAILED: bench_fail(c->t->why, c->t->err);
    case LK_FLOW_READ:
    case LK_FLOW_WRITE: return;
    }
  } while (c->type->has_more != NULL && c->type->has_more(c->t));
}

static void on_io(struct ev_loop *loop, ev_io *w, int events)
{
  connects *c = w->data;

  (void)loop;
  (void)events;
  if (c->connected)
    receive(c);
  else
    advance(c, c->type->handshake(c->t));
}

static void begin_next(connects *c)
{
  if (c->made == c->b->n) {
    bench_done(c->b);
    return;
  }
  c->connected = false;
  c->answered = 0;
  advance(c, c->type->open(c->t, &c->to));
}

static void start(void *arg)
{
  begin_next(arg);
}

/* Use the first server of the list. Its address must be an IP address, since no
 * name is resolved here. */
static void use_server(const char *host, uint16_t port, void *arg)
{
  connects *c = arg;
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                           .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  char service[8];

  if (c->to.address != NULL)
    return;
  snprintf(c->host, sizeof c->host, "%s", host);
  snprintf(service, sizeof service, "%u", (unsigned)port);
  if (getaddrinfo(host, service, &hints, &found) != 0)
    bench_fail("not an address", LK_ERR_RESOLVE);
  memcpy(&c->address, found->ai_addr, found->ai_addrlen);
  c->to = (lk_endpoint){.size = sizeof(lk_endpoint),
                        .address = (const struct sockaddr *)&c->address,
                        .address_len = found->ai_addrlen,
                        .host = c->host,
                        .tls = lk_client_tls(c->b->first.client)};
  freeaddrinfo(found);
}

void bench_connects(bench *b)
{
  connects c = {.b = b,
                .type = lk_transport_of(b->first.client),
                .resume = bench_is(b, "session", "resumed")};
  bench_cost cost;

  c.t = bench_new(1, c.type->object_size);
  c.t->fd = -1;
  lk_hosts_each(b->hosts, use_server, &c);
  ev_init(&c.io, on_io);
  c.io.data = &c;
  bench_region(b, start, &c, &cost);
  bench_print("connect", b->n, &cost, " session=%s",
              c.resume ? "resumed" : "new");
  if (c.type->end != NULL)
    c.type->end(c.t);
  free(c.t);
}
