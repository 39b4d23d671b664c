/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection.h"

#include <string.h>

#include "base/mem.h"

/* How often a client is read before the other clients of the loop are. */
enum { READS_PER_TURN = 16 };

static void on_connection_events(lk_loop_io *io, int events);
static void on_connection_lookup(lk_lookup *l, const lk_address *list,
                                 size_t count, const char *why);

/* ---- life ---------------------------------------------------------------- */

lk_connection *lk__connection_new(lk_driver_shared *x)
{
  lk_connection *n = lk__mem_new(&x->mem, sizeof *n);

  if (n == NULL)
    return NULL;
  n->refs = 1;
  n->shared = x;
  x->refs++;
  lk__list_init(&n->link);
  lk__list_init(&n->update);
  lk__list_init(&n->lookup.link);
  n->lookup.done = on_connection_lookup;
  n->transport.io.on_events = on_connection_events;
  return n;
}

int lk__connection_init_transport(lk_connection *n)
{
  const lk_transport_type *type = lk_transport_of(n->client);

  if (type == NULL)
    return LK_ERR_UNIMPLEMENTED;
  return lk__watched_transport_init(&n->transport, n->shared->loop, type,
                                    &n->shared->mem)
             ? 0
             : LK_ERR_NO_MEMORY;
}

static void connection_unref(lk_connection *n)
{
  lk_driver_shared *x = n->shared;

  if (--n->refs > 0)
    return;
  lk__watched_transport_free(&n->transport, &x->mem);
  lk__address_list_free(&n->addresses, &x->mem);
  lk__mem_free(&x->mem, n);
  lk__driver_shared_unref(x);
}

static void connection_hold_loop(lk_connection *n, bool hold)
{
  lk_loop *loop = n->shared->loop;

  if (hold == n->holds_loop)
    return;
  n->holds_loop = hold;
  lk__loop_hold(loop, hold);
}

static void connection_close(lk_connection *n)
{
  lk__lookup_cancel(&n->lookup);
  lk__watched_transport_close(&n->transport);
  n->stage = LK_STAGE_NONE;
  n->send_waits_for = 0;
  n->recv_waits_for = 0;
}

static void connection_end_probe(lk_connection *n)
{
  lk__probe_connection_end(n->probe);
  n->probe = NULL;
}

void lk__connection_abandon(lk_connection *n)
{
  connection_close(n);
  connection_end_probe(n);
  lk__list_remove(&n->update);
  lk__heap_remove(&n->shared->deadlines, &n->deadline);
  connection_hold_loop(n, false);
}

void lk__connection_detach_client(lk_connection *n)
{
  lk__connection_abandon(n);
  lk__list_remove(&n->link);
  n->client = NULL;
  connection_unref(n);
}

void lk__connection_request_update(lk_connection *n)
{
  if (!lk__list_empty(&n->update) || lk__driver_shared_in_child(n->shared))
    return;
  connection_hold_loop(n, true);
  lk__driver_shared_add_update(n->shared, &n->update);
}

/* ---- inputs of the client. Each can free it, fork, or change its wish. --- */

/* Whether the connection is still that of `attempt`, in the same process. */
static bool connection_goes_on(const lk_connection *n, uint64_t attempt)
{
  return n->attempt == attempt && n->stage != LK_STAGE_NONE &&
         !lk__driver_shared_in_child(n->shared);
}

static void connection_fail(lk_connection *n, int err, const char *why)
{
  connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed(n->client, n->attempt, err, why);
}

static void connection_fail_transport(lk_connection *n)
{
  const lk_transport *t = n->transport.object;

  if (t->err != LK_ERR_TLS) {
    connection_fail(n, t->err, t->why);
    return;
  }
  connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed_tls(n->client, n->attempt, t->cause, t->why);
}

/* ---- connecting ---------------------------------------------------------- */

/* A step of connecting returned `flow`. */
static void connection_go_on(lk_connection *n, lk_flow flow)
{
  switch (flow) {
  case LK_FLOW_READ:
  case LK_FLOW_WRITE:
    (void)lk__watched_transport_await(&n->transport, flow);
    return;
  case LK_FLOW_END:
    connection_fail(n, LK_ERR_CONNECT, "the server closed the connection");
    return;
  case LK_FLOW_FAILED: connection_fail_transport(n); return;
  case LK_FLOW_DONE: break;
  }
  n->stage = LK_STAGE_OPEN;
  lk__connection_request_update(n);
  lk_client_connected(n->client, n->attempt);
}

static void connection_connect(lk_connection *n, const lk_address *address)
{
  const lk_transport_target to = {.address = address,
                                  .port = n->port,
                                  .host = n->addresses.host,
                                  .tls = lk_client_tls(n->client)};

  n->stage = LK_STAGE_CONNECTING;
  connection_go_on(n, lk__watched_transport_connect(&n->transport, &to));
}

static void connection_connect_resolved(lk_connection *n)
{
  connection_connect(n, lk__address_list_use(&n->addresses, n->address_index));
}

static void connection_report_resolved(lk_connection *n)
{
  lk_want want;
  uint64_t attempt = n->attempt;

  lk__connection_request_update(n);
  lk_client_resolved(n->client, attempt, (uint32_t)n->addresses.count);
  if (!connection_goes_on(n, attempt))
    return;
  lk_client_want(n->client, &want);
  if (want.attempt == attempt)
    connection_connect_resolved(n);
}

static void on_connection_lookup(lk_lookup *l, const lk_address *list,
                                 size_t count, const char *why)
{
  lk_connection *n = LK_OWNER(l, lk_connection, lookup);
  lk_driver_shared *x = n->shared;

  if (lk__driver_shared_in_child(x))
    return;
  n->refs++;
  if (count == 0)
    connection_fail(n, LK_ERR_RESOLVE, why);
  else if (!lk__address_list_set(&n->addresses, &x->mem, list, count,
                                 x->fork_check))
    connection_fail(n, LK_ERR_RESOLVE, "out of memory");
  else
    connection_report_resolved(n);
  connection_unref(n);
}

static void connection_start(lk_connection *n, const lk_want *want)
{
  lk_driver_shared *x = n->shared;
  lk_address literal;

  n->attempt = want->attempt;
  if (n->attempt == 0)
    return;
  n->port = want->port;
  n->address_index = want->address;
  if (!lk__address_list_set_host(&n->addresses, &x->mem, want->host)) {
    connection_fail(n, LK_ERR_CONNECT, "out of memory");
  } else if (lk__address_parse(&literal, n->addresses.host)) {
    connection_connect(n, &literal);
  } else if (n->address_index > 0 && n->addresses.count > 0) {
    connection_connect_resolved(n);
  } else {
    n->stage = LK_STAGE_RESOLVING;
    if (!lk__resolver_lookup(x->resolver, &n->lookup, n->addresses.host))
      connection_fail(n, LK_ERR_RESOLVE, "out of memory");
  }
}

/* ---- transfer ------------------------------------------------------------ */

/* Receive once into the client's memory or the common buffer. true: there may
   be more to receive now. */
static bool connection_receive_once(lk_connection *n)
{
  const lk_watched_transport *s = &n->transport;
  uint64_t attempt = n->attempt;
  size_t got, size = LK_RECEIVE_BUFFER_SIZE;
  void *room = lk_client_receive_buffer(n->client, attempt,
                                        LK_RECEIVE_BUFFER_SIZE, &size);

  if (room == NULL) {
    room = n->shared->receive_buffer;
    size = LK_RECEIVE_BUFFER_SIZE;
  }
  switch (s->type->recv(s->object, room, size, &got)) {
  case LK_FLOW_READ: return false;
  case LK_FLOW_WRITE:
    n->recv_waits_for = LK_LOOP_WRITE;
    lk__connection_request_update(n);
    return false;
  case LK_FLOW_END: connection_fail(n, 0, NULL); return false;
  case LK_FLOW_FAILED: connection_fail_transport(n); return false;
  case LK_FLOW_DONE: break;
  }
  lk__connection_request_update(n);
  lk_client_received(n->client, attempt, room, got);
  return connection_goes_on(n, attempt) &&
         (got == size || lk__watched_transport_has_more(s));
}

static void connection_receive(lk_connection *n)
{
  lk_loop *loop = n->shared->loop;

  n->recv_waits_for = 0;
  for (int i = 0; i < READS_PER_TURN; i++)
    if (!connection_receive_once(n))
      return;
  /* The descriptor does not announce bytes that the transport holds. */
  if (lk__watched_transport_has_more(&n->transport))
    loop->type->feed_io(loop, &n->transport.io, LK_LOOP_READ);
}

static void connection_send(lk_connection *n)
{
  const lk_watched_transport *s = &n->transport;
  uint64_t attempt = n->attempt;
  lk_bytes bytes = lk_client_pending(n->client);
  size_t done;

  if (bytes.len == 0)
    return;

  lk_flow flow = s->type->send(s->object, bytes.at, bytes.len, &done);

  if (flow == LK_FLOW_READ)
    n->send_waits_for = LK_LOOP_READ;
  if (flow == LK_FLOW_WRITE)
    n->send_waits_for = LK_LOOP_WRITE;
  if (done > 0)
    lk_client_sent(n->client, attempt, done);
  if (flow != LK_FLOW_FAILED)
    return;
  /* The server may have replied before it closed the connection. */
  if (connection_goes_on(n, attempt))
    connection_receive(n);
  if (connection_goes_on(n, attempt))
    connection_fail_transport(n);
}

static int connection_recv_events(const lk_connection *n)
{
  return n->recv_waits_for != 0 ? n->recv_waits_for : LK_LOOP_READ;
}

static void on_connection_events(lk_loop_io *io, int events)
{
  lk_connection *n = LK_OWNER(io, lk_connection, transport.io);

  if (lk__driver_shared_in_child(n->shared))
    return;
  n->refs++;
  if ((events & LK_LOOP_ERROR) != 0) {
    connection_fail(
        n, n->stage == LK_STAGE_OPEN ? LK_ERR_CONNECTION_LOSS : LK_ERR_CONNECT,
        "the event loop cannot watch the descriptor");
  } else if (n->stage == LK_STAGE_CONNECTING) {
    connection_go_on(n, n->transport.type->handshake(n->transport.object));
  } else {
    if ((events & n->send_waits_for) != 0) {
      n->send_waits_for = 0;
      lk__connection_request_update(n);
    }
    if ((events & connection_recv_events(n)) != 0)
      connection_receive(n);
  }
  connection_unref(n);
}

/* ---- probes -------------------------------------------------------------- */

static void connection_report_probe(lk_connection *n, uint64_t attempt,
                                    const char *reply, size_t len)
{
  lk__connection_request_update(n);
  lk_client_probed(n->client, attempt, reply, len);
}

static void on_probe_done(void *arg, const char *reply, size_t len)
{
  lk_connection *n = arg;
  uint64_t attempt = lk__probe_connection_attempt(n->probe);
  char copy[LK_PROBE_ROOM];

  memcpy(copy, reply, sizeof copy);
  connection_end_probe(n);
  connection_report_probe(n, attempt, copy, len);
}

static void connection_update_probe(lk_connection *n)
{
  lk_want want;

  lk_client_want_probe(n->client, &want);
  if (want.attempt ==
      (n->probe == NULL ? 0 : lk__probe_connection_attempt(n->probe)))
    return;
  connection_end_probe(n);
  if (want.attempt == 0)
    return;
  n->probe = lk__probe_connection_new(n->shared, n->client, n->transport.type,
                                      &want, on_probe_done, n);
  if (n->probe == NULL)
    connection_report_probe(n, want.attempt, NULL, 0);
  else
    lk__probe_connection_start(n->probe);
}

/* ---- updates ------------------------------------------------------------- */

/* Whether the client can be called. */
static bool connection_has_client(const lk_connection *n)
{
  return n->client != NULL && !lk__driver_shared_in_child(n->shared);
}

static void connection_update_attempt(lk_connection *n)
{
  lk_want want;

  lk_client_want(n->client, &want);
  if (want.attempt == n->attempt)
    return;
  connection_close(n);
  connection_start(n, &want);
}

static void connection_tick(lk_connection *n)
{
  n->ticked = n->shared->round;
  lk__connection_request_update(n);
  lk_client_tick(n->client);
}

/* An entry of the heap that is too early stays: it costs one comparison when it
   passes. */
static void connection_set_deadline(lk_connection *n, int64_t at_ms)
{
  lk_heap *heap = &n->shared->deadlines;

  if (at_ms == INT64_MAX ||
      (lk__heap_has(&n->deadline) && n->deadline.at <= at_ms))
    return;
  lk__heap_remove(heap, &n->deadline);
  lk__heap_add(heap, &n->deadline, at_ms);
}

/* While recv() waits for another event, the descriptor is not watched for
   reading, since it would be readable all the time. */
static void connection_update_watchers(lk_connection *n)
{
  int64_t at_ms = lk_client_deadline(n->client);

  if (n->stage == LK_STAGE_OPEN)
    lk__loop_set_io(n->shared->loop, &n->transport.io,
                    n->send_waits_for | connection_recv_events(n));
  connection_set_deadline(n, at_ms);
  connection_hold_loop(n, n->attempt != 0 || at_ms != INT64_MAX ||
                              !lk__list_empty(&n->update));
}

void lk__connection_update(lk_connection *n)
{
  const lk_driver_shared *x = n->shared;

  n->refs++;
  if (lk_client_deadline(n->client) <= x->now_ms && n->ticked != x->round)
    connection_tick(n);
  if (connection_has_client(n))
    connection_update_attempt(n);
  if (connection_has_client(n))
    connection_update_probe(n);
  if (connection_has_client(n) && n->stage == LK_STAGE_OPEN &&
      n->send_waits_for == 0)
    connection_send(n);
  if (connection_has_client(n))
    connection_update_watchers(n);
  connection_unref(n);
}

void lk__connection_on_deadline(lk_connection *n)
{
  n->refs++;
  if (lk_client_deadline(n->client) <= n->shared->now_ms)
    connection_tick(n);
  else
    connection_set_deadline(n, lk_client_deadline(n->client));
  connection_unref(n);
}
