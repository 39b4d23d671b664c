/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection.h"

#include <string.h>

#include "net/driver.h"
#include "net/probe_connection.h"

/* One client may not keep the others waiting: it is read so many times before
   it is their turn. */
enum { READS_PER_TURN = 16 };

static void on_io(struct ev_loop *loop, ev_io *w, int revents);
static void on_lookup(lk_lookup *l, const lk_address *list, size_t count,
                      const char *why);

lk_connection *lk__connection_new(lk_ev *ev)
{
  lk_connection *n = lk__mem_new(&ev->mem, sizeof *n);

  if (n == NULL)
    return NULL;
  n->users = 1;
  n->ev = ev;
  ev->users++;
  lk__list_add(&ev->conns, &n->all);
  lk__list_init(&n->dirty);
  lk__list_init(&n->lookup.link);
  n->lookup.done = on_lookup;
  ev_init(&n->io, on_io);
  n->io.data = n;
  return n;
}

int lk__connection_init_transport(lk_connection *n)
{
  const lk_transport_type *type = lk_transport_of(n->client);

  if (type == NULL)
    return LK_ERR_UNIMPLEMENTED;
  n->transport = lk__mem_new(&n->ev->mem, type->size);
  if (n->transport == NULL)
    return LK_ERR_NO_MEMORY;
  n->transport->fd = -1;
  n->type = type;
  return 0;
}

static void release(lk_connection *n)
{
  lk_ev *ev = n->ev;

  if (--n->users > 0)
    return;
  if (n->transport != NULL && n->type->end != NULL)
    n->type->end(n->transport);
  lk__mem_free(&ev->mem, n->list);
  lk__mem_free(&ev->mem, n->host);
  lk__mem_free(&ev->mem, n->transport);
  lk__mem_free(&ev->mem, n);
  lk__ev_release(ev);
}

/* Our watchers keep no loop alive: each start is followed by an ev_unref().
   What does is the client, while it has something to wait for. */
static void watch(lk_connection *n, int events)
{
  struct ev_loop *loop = n->ev->loop;

  if (events == n->watched)
    return;
  if (n->watched != 0) {
    ev_ref(loop);
    ev_io_stop(loop, &n->io);
  }
  n->watched = events;
  if (events == 0)
    return;
  ev_io_set(&n->io, n->transport->fd, events);
  ev_io_start(loop, &n->io);
  ev_unref(loop);
}

static void set_live(lk_connection *n, bool live)
{
  if (live == n->live)
    return;
  n->live = live;
  if (live)
    ev_ref(n->ev->loop);
  else
    ev_unref(n->ev->loop);
}

void lk__connection_schedule_update(lk_connection *n)
{
  lk_ev *ev = n->ev;

  if (!lk__list_empty(&n->dirty) || lk__ev_forked(ev))
    return;
  lk__list_add(&ev->dirty, &n->dirty);
  set_live(n, true);
  /* Once the watcher had its turn the loop waits next, unless it is told. */
  if (!ev->walking && ev->settled == ev_iteration(ev->loop))
    ev_feed_event(ev->loop, &ev->prepare, EV_PREPARE);
}

/* Close what there is. */
static void hang_up(lk_connection *n)
{
  lk__lookup_cancel(&n->lookup);
  watch(n, 0);
  if (n->transport != NULL)
    n->type->close(n->transport);
  n->stage = LK_STAGE_NONE;
  n->send_on = 0;
  n->recv_on = 0;
}

void lk__connection_abandon(lk_connection *n)
{
  hang_up(n);
  lk__probe_connection_end(n);
  lk__list_remove(&n->dirty);
  lk__heap_remove(&n->ev->due, &n->due);
  set_live(n, false);
}

void lk__connection_detach_client(lk_connection *n)
{
  lk__connection_abandon(n);
  lk__list_remove(&n->all);
  n->client = NULL;
  release(n);
}

/* ---- inputs: each can free the client, fork, or change its wish ---------- */

/* Whether the transport is still the one of `attempt`, and ours. */
static bool goes_on(const lk_connection *n, uint64_t attempt)
{
  return n->attempt == attempt && n->stage != LK_STAGE_NONE &&
         !lk__ev_forked(n->ev);
}

static void fail(lk_connection *n, int err, const char *why)
{
  hang_up(n);
  lk__connection_schedule_update(n);
  lk_client_failed(n->client, n->attempt, err, why);
}

static void fail_transport(lk_connection *n)
{
  const lk_transport *t = n->transport;

  if (t->err != LK_ERR_TLS) {
    fail(n, t->err, t->why);
    return;
  }
  hang_up(n);
  lk__connection_schedule_update(n);
  lk_client_failed_tls(n->client, n->attempt, t->cause, t->why);
}

/* A step of connecting ended. */
static void advance(lk_connection *n, lk_flow flow)
{
  switch (flow) {
  case LK_FLOW_READ: watch(n, EV_READ); return;
  case LK_FLOW_WRITE: watch(n, EV_WRITE); return;
  case LK_FLOW_END: fail(n, LK_ERR_CONNECT, "the peer hung up"); return;
  case LK_FLOW_FAILED: fail_transport(n); return;
  case LK_FLOW_DONE: break;
  }
  n->stage = LK_STAGE_OPEN;
  lk__connection_schedule_update(n);
  lk_client_connected(n->client, n->attempt);
}

static void open_to(lk_connection *n, const lk_address *to)
{
  lk_address a = *to;
  lk_endpoint endpoint = {.address = &a.any,
                          .address_len = lk__address_len(&a),
                          .host = n->host,
                          .tls = lk_client_tls(n->client)};

  lk__address_set_port(&a, n->port);
  n->stage = LK_STAGE_CONNECTING;
  advance(n, n->type->open(n->transport, &endpoint));
}

static void open_in_list(lk_connection *n)
{
  n->used = n->list[n->address % n->count];
  open_to(n, &n->used);
}

static bool has_more(const lk_connection *n)
{
  return n->type->has_more != NULL && n->type->has_more(n->transport);
}

static void receive(lk_connection *n)
{
  lk_ev *ev = n->ev;
  uint64_t attempt = n->attempt;

  n->recv_on = 0;
  for (int i = 0; i < READS_PER_TURN; i++) {
    size_t got, size = LK_EV_ROOM;
    void *room = lk_client_room(n->client, attempt, LK_EV_ROOM, &size);

    if (room == NULL) {
      room = ev->room;
      size = LK_EV_ROOM;
    }
    lk_flow flow = n->type->recv(n->transport, room, size, &got);

    switch (flow) {
    case LK_FLOW_READ: return;
    case LK_FLOW_WRITE:
      n->recv_on = EV_WRITE;
      lk__connection_schedule_update(n);
      return;
    case LK_FLOW_END: fail(n, 0, NULL); return;
    case LK_FLOW_FAILED: fail_transport(n); return;
    case LK_FLOW_DONE: break;
    }
    lk__connection_schedule_update(n);
    lk_client_received(n->client, attempt, room, got);
    if (!goes_on(n, attempt) || (got < size && !has_more(n)))
      return;
  }
  /* The transport may hold bytes for which the descriptor will not stir. */
  if (has_more(n))
    ev_feed_event(ev->loop, &n->io, EV_READ);
}

static void transmit(lk_connection *n)
{
  uint64_t attempt = n->attempt;
  lk_bytes bytes = lk_client_pending(n->client);
  size_t done;

  if (bytes.len == 0)
    return;

  lk_flow flow = n->type->send(n->transport, bytes.at, bytes.len, &done);

  if (flow == LK_FLOW_READ)
    n->send_on = EV_READ;
  if (flow == LK_FLOW_WRITE)
    n->send_on = EV_WRITE;
  if (done > 0)
    lk_client_sent(n->client, attempt, done);
  if (flow != LK_FLOW_FAILED)
    return;
  /* What the server said before it hung up may be the answers. */
  if (goes_on(n, attempt))
    receive(n);
  if (goes_on(n, attempt))
    fail_transport(n);
}

static void on_io(struct ev_loop *loop, ev_io *w, int revents)
{
  lk_connection *n = w->data;

  (void)loop;
  if (lk__ev_forked(n->ev))
    return;
  n->users++;
  if ((revents & EV_ERROR) != 0) {
    fail(n, n->stage == LK_STAGE_OPEN ? LK_ERR_LOSS : LK_ERR_CONNECT,
         "the event loop refuses the descriptor");
  } else if (n->stage == LK_STAGE_CONNECTING) {
    advance(n, n->type->handshake(n->transport));
  } else {
    if ((revents & n->send_on) != 0) {
      n->send_on = 0;
      lk__connection_schedule_update(n);
    }
    if ((revents & (n->recv_on != 0 ? n->recv_on : EV_READ)) != 0)
      receive(n);
  }
  release(n);
}

/* ---- names --------------------------------------------------------------- */

static void swap_addresses(const lk_connection *n, size_t i, size_t k)
{
  lk_address swap = n->list[i];

  n->list[i] = n->list[k];
  n->list[k] = swap;
}

/* The address in the last attempt comes last: its server has just been lost. */
static void put_used_address_last(const lk_connection *n)
{
  for (size_t i = 0; i < n->count; i++) {
    if (lk__address_equal(&n->list[i], &n->used)) {
      swap_addresses(n, i, n->count - 1);
      return;
    }
  }
}

/* Nobody shall always come first. */
static void shuffle(lk_connection *n)
{
  for (size_t i = n->count; i > 1; i--) {
    uint32_t r;

    lk__fork_check_random(n->ev->origin, &r, sizeof r);
    swap_addresses(n, r % i, i - 1);
  }
}

static bool keep(lk_connection *n, const lk_address *list, size_t count)
{
  lk_address *copy = lk__mem_resize(&n->ev->mem, n->list, count * sizeof *copy);

  if (copy == NULL)
    return false;
  memcpy(copy, list, count * sizeof *copy);
  n->list = copy;
  n->count = count;
  shuffle(n);
  put_used_address_last(n);
  return true;
}

static void connect_found(lk_connection *n)
{
  lk_want want;
  uint64_t attempt = n->attempt;

  lk__connection_schedule_update(n);
  lk_client_resolved(n->client, attempt, (uint32_t)n->count);
  if (!goes_on(n, attempt))
    return;
  lk_client_want(n->client, &want);
  if (want.attempt == attempt)
    open_in_list(n);
}

static void on_lookup(lk_lookup *l, const lk_address *list, size_t count,
                      const char *why)
{
  lk_connection *n = LK_OWNER(l, lk_connection, lookup);

  if (lk__ev_forked(n->ev))
    return;
  n->users++;
  if (count == 0)
    fail(n, LK_ERR_RESOLVE, why);
  else if (!keep(n, list, count))
    fail(n, LK_ERR_RESOLVE, "out of memory");
  else
    connect_found(n);
  release(n);
}

/* Remember whom the attempt is about; false: no memory. */
static bool set_host(lk_connection *n, const char *host)
{
  if (n->host != NULL && strcmp(n->host, host) == 0)
    return true;

  char *copy = lk__mem_text(&n->ev->mem, host);

  if (copy == NULL)
    return false;
  lk__mem_free(&n->ev->mem, n->host);
  n->host = copy;
  n->count = 0;
  return true;
}

static void start(lk_connection *n, const lk_want *want)
{
  lk_address literal;

  n->attempt = want->attempt;
  if (n->attempt == 0)
    return;
  n->port = want->port;
  n->address = want->address;
  if (!set_host(n, want->host)) {
    fail(n, LK_ERR_CONNECT, "out of memory");
  } else if (lk__address_parse(&literal, n->host)) {
    open_to(n, &literal);
  } else if (n->address > 0 && n->count > 0) {
    open_in_list(n);
  } else {
    n->stage = LK_STAGE_RESOLVING;
    if (!lk__resolver_lookup(n->ev->resolver, &n->lookup, n->host))
      fail(n, LK_ERR_RESOLVE, "out of memory");
  }
}

/* ---- the turn ------------------------------------------------------------ */

static void follow_wish(lk_connection *n)
{
  lk_want want;

  lk_client_want(n->client, &want);
  if (want.attempt == n->attempt)
    return;
  hang_up(n);
  start(n, &want);
}

static void tick(lk_connection *n)
{
  n->ticked = n->ev->turn;
  lk__connection_schedule_update(n);
  lk_client_tick(n->client);
}

/* An entry of the heap that is too early stays; it costs one look. */
static void set_deadline(lk_connection *n, int64_t at)
{
  lk_heap *due = &n->ev->due;

  if (at == INT64_MAX || (lk__heap_has(&n->due) && n->due.at <= at))
    return;
  lk__heap_remove(due, &n->due);
  lk__heap_add(due, &n->due, at);
}

void lk__connection_update(lk_connection *n)
{
  lk_ev *ev = n->ev;

  n->users++;
  if (lk_client_deadline(n->client) <= ev->now && n->ticked != ev->turn)
    tick(n);
  if (n->client != NULL && !lk__ev_forked(ev))
    follow_wish(n);
  if (n->client != NULL && !lk__ev_forked(ev))
    lk__probe_connection_update(n);
  if (n->client != NULL && n->stage == LK_STAGE_OPEN && n->send_on == 0 &&
      !lk__ev_forked(ev))
    transmit(n);
  if (n->client != NULL && !lk__ev_forked(ev)) {
    int64_t at = lk_client_deadline(n->client);

    /* What has come stays unread while recv() has to wait for something else.
     */
    if (n->stage == LK_STAGE_OPEN)
      watch(n, n->send_on | (n->recv_on != 0 ? n->recv_on : EV_READ));
    set_deadline(n, at);
    set_live(n,
             n->attempt != 0 || at != INT64_MAX || !lk__list_empty(&n->dirty));
  }
  release(n);
}

void lk__connection_on_deadline(lk_connection *n)
{
  n->users++;
  if (lk_client_deadline(n->client) <= n->ev->now)
    tick(n);
  else
    set_deadline(n, lk_client_deadline(n->client));
  release(n);
}
