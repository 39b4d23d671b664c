/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/probe_connection.h"

#include <string.h>

#include "net/driver.h"

static const char word[] = LK_PROBE;

enum { WORD_LEN = sizeof word - 1 };

struct lk_probe_connection {
  lk_connection *conn;
  uint64_t number; /* of the client's wish */
  uint16_t port;
  lk_lookup lookup;
  lk_transport *transport; /* of the conn's type */
  ev_io io;
  int watched; /* what `io` waits for; 0: it is stopped */
  bool open;
  size_t sent;
  size_t got;
  char answer[LK_PROBE_ROOM];
  char host[];
};

/* Keeps no loop alive: the client does. */
static void watch(lk_probe_connection *q, int events)
{
  struct ev_loop *loop = q->conn->ev->loop;

  if (events == q->watched)
    return;
  if (q->watched != 0) {
    ev_ref(loop);
    ev_io_stop(loop, &q->io);
  }
  q->watched = events;
  if (events == 0)
    return;
  ev_io_set(&q->io, q->transport->fd, events);
  ev_io_start(loop, &q->io);
  ev_unref(loop);
}

void lk__probe_connection_end(lk_connection *n)
{
  lk_probe_connection *q = n->inquiry;

  if (q == NULL)
    return;
  n->inquiry = NULL;
  lk__lookup_cancel(&q->lookup);
  watch(q, 0);
  n->type->close(q->transport);
  if (n->type->end != NULL)
    n->type->end(q->transport);
  lk__mem_free(&n->ev->mem, q->transport);
  lk__mem_free(&n->ev->mem, q);
}

/* Tell what was answered. The client can be freed, and `n` with it. */
static void tell(lk_connection *n, uint64_t number, const char *answer,
                 size_t len)
{
  lk__connection_schedule_update(n);
  lk_client_probed(n->client, number, answer, len);
}

/* The last that is done with it. */
static void finish(lk_probe_connection *q, size_t len)
{
  lk_connection *n = q->conn;
  uint64_t number = q->number;
  char answer[LK_PROBE_ROOM];

  memcpy(answer, q->answer, sizeof answer);
  lk__probe_connection_end(n);
  tell(n, number, answer, len);
}

/* A step did not get to its end. */
static void wait_or_fail(lk_probe_connection *q, lk_flow flow)
{
  if (flow == LK_FLOW_READ)
    watch(q, EV_READ);
  else if (flow == LK_FLOW_WRITE)
    watch(q, EV_WRITE);
  else
    finish(q, 0);
}

static void listen_to(lk_probe_connection *q)
{
  lk_connection *n = q->conn;

  while (q->got < sizeof q->answer) {
    size_t got;
    lk_flow flow = n->type->recv(q->transport, q->answer + q->got,
                                 sizeof q->answer - q->got, &got);

    if (flow == LK_FLOW_END)
      break;
    if (flow != LK_FLOW_DONE) {
      wait_or_fail(q, flow);
      return;
    }
    q->got += got;
  }
  finish(q, q->got);
}

static void talk(lk_probe_connection *q)
{
  while (q->sent < WORD_LEN) {
    size_t done;
    lk_flow flow = q->conn->type->send(q->transport, word + q->sent,
                                       WORD_LEN - q->sent, &done);

    q->sent += done;
    if (flow != LK_FLOW_DONE) {
      wait_or_fail(q, flow);
      return;
    }
  }
  listen_to(q);
}

/* A step of connecting ended. */
static void advance(lk_probe_connection *q, lk_flow flow)
{
  q->open = flow == LK_FLOW_DONE;
  if (q->open)
    talk(q);
  else
    wait_or_fail(q, flow);
}

static void on_io(struct ev_loop *loop, ev_io *w, int revents)
{
  lk_probe_connection *q = w->data;

  (void)loop;
  if (lk__ev_forked(q->conn->ev))
    return;
  if ((revents & EV_ERROR) != 0)
    finish(q, 0);
  else if (q->open)
    talk(q);
  else
    advance(q, q->conn->type->handshake(q->transport));
}

static void open_to(lk_probe_connection *q, const lk_address *to)
{
  lk_address a = *to;
  lk_endpoint endpoint = {.address = &a.any,
                          .address_len = lk__address_len(&a),
                          .host = q->host,
                          .tls = lk_client_tls(q->conn->client)};

  lk__address_set_port(&a, q->port);
  advance(q, q->conn->type->open(q->transport, &endpoint));
}

/* Another one each time: of several not all may have a quorum. */
static void on_lookup(lk_lookup *l, const lk_address *list, size_t count,
                      const char *why)
{
  lk_probe_connection *q = LK_OWNER(l, lk_probe_connection, lookup);
  lk_ev *ev = q->conn->ev;
  uint32_t r;

  (void)why;
  if (lk__ev_forked(ev))
    return;
  lk__fork_check_random(ev->origin, &r, sizeof r);
  if (count == 0)
    finish(q, 0);
  else
    open_to(q, &list[r % count]);
}

static lk_probe_connection *new_inquiry(lk_connection *n, const lk_want *want)
{
  lk_ev *ev = n->ev;
  size_t size = strlen(want->host) + 1;
  lk_probe_connection *q = lk__mem_new(&ev->mem, sizeof *q + size);

  if (q == NULL)
    return NULL;
  q->transport = lk__mem_new(&ev->mem, n->type->size);
  if (q->transport == NULL) {
    lk__mem_free(&ev->mem, q);
    return NULL;
  }
  q->transport->fd = -1;
  q->conn = n;
  q->number = want->attempt;
  q->port = want->port;
  memcpy(q->host, want->host, size);
  lk__list_init(&q->lookup.link);
  q->lookup.done = on_lookup;
  ev_init(&q->io, on_io);
  q->io.data = q;
  n->inquiry = q;
  return q;
}

static void begin(lk_connection *n, const lk_want *want)
{
  lk_probe_connection *q = new_inquiry(n, want);
  lk_address literal;

  if (q == NULL)
    tell(n, want->attempt, NULL, 0);
  else if (lk__address_parse(&literal, q->host))
    open_to(q, &literal);
  else if (!lk__resolver_lookup(n->ev->resolver, &q->lookup, q->host))
    finish(q, 0);
}

void lk__probe_connection_update(lk_connection *n)
{
  lk_want want;

  lk_client_want_probe(n->client, &want);
  if (want.attempt == (n->inquiry == NULL ? 0 : n->inquiry->number))
    return;
  lk__probe_connection_end(n);
  if (want.attempt != 0)
    begin(n, &want);
}
