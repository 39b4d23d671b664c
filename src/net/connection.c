/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/driver.h"
#include "net/probe.h"

/* ---- references ---------------------------------------------------------- */

/* Called when no reference is left. */
static void connection_free(lk_connection *n)
{
  lk_driver_shared *x = n->shared;

  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    lk__watched_transport_free(&n->race.tries[i].transport, &x->mem);
  lk__address_list_free(&n->addresses, &x->mem);
  lk__mem_free(&x->mem, n);
  lk__driver_shared_unref(x);
}

static inline void connection_unref(lk_connection *n)
{
  if (--n->refs == 0)
    connection_free(n);
}

/* Keep the loop running for this connection. */
static inline void connection_ref_loop(lk_connection *n)
{
  if (!n->refs_loop)
    lk__loop_ref(n->shared->loop);
  n->refs_loop = true;
}

/* End what connection_ref_loop() has begun, if it was called. */
static inline void connection_unref_loop(lk_connection *n)
{
  if (n->refs_loop)
    lk__loop_unref(n->shared->loop);
  n->refs_loop = false;
}

void lk__connection_request_update(lk_connection *n)
{
  if (!lk__list_empty(&n->update) || lk__driver_shared_in_child(n->shared))
    return;
  connection_ref_loop(n); /* so that the loop runs until the update */
  lk__driver_shared_add_update(n->shared, &n->update);
}

/* ---- the end of an attempt ----------------------------------------------- */

static void try_close(lk_race_try *t)
{
  lk__watched_transport_close(&t->transport);
  t->open = false;
}

static void race_close(lk_connection *n)
{
  lk__loop_stop_timer(n->shared->loop, &n->race.timer);
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    try_close(&n->race.tries[i]);
  n->race.failed = NULL;
}

/* End the attempt, or close the connection that it has led to. */
static void connection_close(lk_connection *n)
{
  lk__lookup_cancel(&n->lookup);
  race_close(n);
  n->stage = LK_STAGE_NONE;
  n->send_waits_for = 0;
  n->recv_waits_for = 0;
}

/* Close, and report `err` and `why` to the client. */
static void connection_fail(lk_connection *n, int err, const char *why)
{
  connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed(n->client, n->attempt, err, why);
}

/* Close, and report the error of a transport to the client. */
static void connection_fail_transport(lk_connection *n,
                                      const lk_watched_transport *failed)
{
  const lk_transport *t = failed->object;

  if (t->err != LK_ERR_TLS) {
    connection_fail(n, t->err, t->why);
    return;
  }
  connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed_tls(n->client, n->attempt, t->cause, t->why);
}

/* ---- reports to the client ----------------------------------------------- */

/* Whether `attempt` is still under way or connected, in this process. To be
   asked after each input to the client: a callback may have freed the client,
   forked, or ended the connection. */
static bool connection_attempt_goes_on(const lk_connection *n, uint64_t attempt)
{
  /* In a forked child, no attempt of the parent goes on. */
  return n->attempt == attempt && n->stage != LK_STAGE_NONE &&
         !lk__driver_shared_in_child(n->shared);
}

/* The attempts of the client at this host are counted by lk_want.address_index:
   behind this one there is one for each address that is left. */
static uint32_t count_attempts(const lk_connection *n)
{
  return n->address_index + 1 +
         (uint32_t)lk__address_list_count_untried(&n->addresses);
}

static bool connection_report_addresses(lk_connection *n)
{
  uint64_t attempt = n->attempt;

  if (n->is_literal)
    return true;
  n->reported = count_attempts(n);
  lk__connection_request_update(n);
  lk_client_resolved(n->client, attempt, n->reported);
  if (!connection_attempt_goes_on(n, attempt))
    return false;
  /* A callback may have made the client give up this attempt. */
  return lk_client_want(n->client)->attempt == attempt;
}

static void connection_note_addresses(const lk_connection *n,
                                      const lk_address *address)
{
  lk_address peer = *address, local;
  socklen_t len = sizeof local;
  char peer_text[LK_ADDRESS_TEXT_SIZE], local_text[LK_ADDRESS_TEXT_SIZE];
  const lk_transport *t = n->transport->object;
  bool knows_local = getsockname(t->fd, &local.any, &len) == 0;

  lk__address_set_port(&peer, n->port);
  lk__address_text(&peer, peer_text, sizeof peer_text);
  if (knows_local)
    lk__address_text(&local, local_text, sizeof local_text);
  lk_client_note_addresses(n->client, n->attempt,
                           knows_local ? local_text : NULL, peer_text);
}

static void connection_on_connected(lk_connection *n, const lk_address *address)
{
  lk_address used = *address;
  bool others_are_left = count_attempts(n) != n->reported;

  if (others_are_left && !connection_report_addresses(n))
    return;
  lk__lookup_cancel(&n->lookup);
  n->addresses.last_used = used;
  n->stage = LK_STAGE_OPEN;
  lk__connection_request_update(n);
  connection_note_addresses(n, &used);
  lk_client_connected(n->client, n->attempt);
}

/* ---- tries of a race ----------------------------------------------------- */

static size_t race_count_open(const lk_race *r)
{
  size_t count = 0;

  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    if (r->tries[i].open)
      count++;
  return count;
}

/* A try that can begin. NULL: as many as possible are open, or there is no
   memory. */
static lk_race_try *race_free_try(lk_connection *n)
{
  lk_race_try *t = n->race.tries;

  while (t < n->race.tries + LK_RACE_MAX_OPEN && t->open)
    t++;
  if (t == n->race.tries + LK_RACE_MAX_OPEN)
    return NULL;
  bool is_made =
      t->transport.object != NULL ||
      lk__watched_transport_init(&t->transport, n->shared->loop,
                                 n->transport->type, &n->shared->mem);

  return is_made ? t : NULL;
}

/* Whether a TLS handshake is under way. */
static bool race_has_tcp(const lk_race *r)
{
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    if (r->tries[i].open &&
        lk__watched_transport_has_tcp(&r->tries[i].transport))
      return true;
  return false;
}

static void try_set_error(lk_race_try *t, const char *why)
{
  lk_transport *object = t->transport.object;

  object->err = LK_ERR_CONNECT;
  snprintf(object->why, sizeof object->why, "%s", why);
}

static void try_set_late(lk_race_try *t)
{
  lk_address address = t->address;
  char text[LK_ADDRESS_TEXT_SIZE];
  char why[sizeof text + 40];

  lk__address_set_port(&address, t->connection->port);
  lk__address_text(&address, text, sizeof text);
  snprintf(why, sizeof why, "connect to %s: no connection in time", text);
  try_set_error(t, why);
}

/* ---- the timer of a race ------------------------------------------------- */

static bool race_can_start(const lk_connection *n)
{
  return race_count_open(&n->race) < LK_RACE_MAX_OPEN &&
         lk__address_list_count_untried(&n->addresses) > 0;
}

static void race_set_timer(lk_connection *n)
{
  const lk_race *r = &n->race;
  int64_t due_ms = race_can_start(n) ? r->next_start_ms : r->give_up_ms;

  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    if (r->tries[i].open && r->tries[i].end_ms < due_ms)
      due_ms = r->tries[i].end_ms;
  if (due_ms == INT64_MAX) {
    lk__loop_stop_timer(n->shared->loop, &n->race.timer);
    return;
  }
  int64_t left_ms = due_ms - lk__clock_now(n->shared->clock);

  lk__loop_set_timer(n->shared->loop, &n->race.timer,
                     left_ms > 0 ? left_ms : 0);
}

/* ---- the end of a race --------------------------------------------------- */

/* The others were not tried to their end. */
static void race_win(lk_connection *n, lk_race_try *winner)
{
  lk_race *r = &n->race;

  lk__loop_stop_timer(n->shared->loop, &r->timer);
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++) {
    lk_race_try *t = &r->tries[i];

    if (t == winner || !t->open)
      continue;
    try_close(t);
    lk__address_list_note_untried(&n->addresses, &t->address);
  }
  r->family = winner->address.any.sa_family;
  n->transport = &winner->transport;
  connection_on_connected(n, &winner->address);
}

/* All addresses have failed. A name server may still add others, but it may
   also be down, and one of the servers up again soon. */
static void race_lose_or_wait(lk_connection *n)
{
  if (race_count_open(&n->race) > 0)
    return;
  if (lk__lookup_waits(&n->lookup)) {
    n->race.give_up_ms = lk__clock_now(n->shared->clock) + LK_RACE_WAIT_MS;
    race_set_timer(n);
  } else {
    connection_fail_transport(n, n->race.failed);
  }
}

/* ---- steps of a race ----------------------------------------------------- */

static void race_start_next(lk_connection *n);

/* A step of the try returned `flow`: wait, win, or try the next address. */
static void try_on_flow(lk_race_try *t, lk_flow flow)
{
  lk_connection *n = t->connection;

  switch (flow) {
  case LK_FLOW_READ:
  case LK_FLOW_WRITE:
    (void)lk__watched_transport_watch_for(&t->transport, flow);
    return;
  case LK_FLOW_END: try_set_error(t, "the server closed the connection"); break;
  case LK_FLOW_FAILED: break;
  case LK_FLOW_DONE: race_win(n, t); return;
  }
  try_close(t);
  n->race.failed = &t->transport;
  race_start_next(n);
}

/* The descriptor of a try is ready, in LK_STAGE_CONNECTING. */
static void connection_on_try_events(lk_race_try *t, int events)
{
  if ((events & LK_LOOP_ERROR) == 0) {
    try_on_flow(t, t->transport.type->handshake(t->transport.object));
    return;
  }
  try_set_error(t, "the event loop cannot watch the descriptor");
  try_on_flow(t, LK_FLOW_FAILED);
}

static void race_note_start(lk_connection *n, lk_race_try *t,
                            const lk_address *address)
{
  lk_race *r = &n->race;
  int64_t now_ms = lk__clock_now(n->shared->clock);
  bool is_ipv6 = address->any.sa_family == AF_INET6;

  t->open = true;
  r->give_up_ms = INT64_MAX;
  t->address = *address;
  t->end_ms = now_ms + lk_client_want(n->client)->tcp_ms;
  r->family = is_ipv6 ? AF_INET : AF_INET6;
  r->last_start_ms = now_ms;
  r->next_start_ms = now_ms + r->delay_ms;
  if (r->delay_ms < LK_RACE_MAX_DELAY_MS)
    r->delay_ms *= 2;
}

static void race_start(lk_connection *n, lk_race_try *t)
{
  const lk_transport_target to = {.address = &t->address,
                                  .port = n->port,
                                  .host = n->addresses.host,
                                  .tls = lk_client_tls(n->client)};

  try_on_flow(t, lk__watched_transport_connect(&t->transport, &to));
}

/* Try the next address, if there is one. */
static void race_start_next(lk_connection *n)
{
  lk_listed_address *next =
      lk__address_list_next(&n->addresses, n->race.family);
  lk_race_try *t = next == NULL ? NULL : race_free_try(n);

  if (t == NULL) {
    /* Without memory for it the address waits. */
    n->race.next_start_ms =
        lk__clock_now(n->shared->clock) + LK_RACE_MAX_DELAY_MS;
    race_set_timer(n);
    race_lose_or_wait(n);
    return;
  }
  next->tried = true;
  race_note_start(n, t, &next->address);
  race_set_timer(n);
  if (connection_report_addresses(n))
    race_start(n, t);
}

static void race_begin(lk_connection *n)
{
  lk_race *r = &n->race;

  if (lk__address_list_count_untried(&n->addresses) == 0)
    lk__address_list_begin_pass(&n->addresses);
  r->delay_ms = LK_RACE_DELAY_MS;
  r->give_up_ms = INT64_MAX;
  race_start_next(n);
}

static void race_continue(lk_connection *n)
{
  if (race_count_open(&n->race) == 0)
    race_start_next(n);
  else
    race_set_timer(n);
}

/* ---- steps of a race at a time ------------------------------------------- */

/* End a try that has no TCP connection in time. Returns whether one was ended:
   the race has gone on then, and may be over. */
static bool race_end_late_try(lk_connection *n, int64_t now_ms)
{
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++) {
    lk_race_try *t = &n->race.tries[i];

    if (!t->open || now_ms < t->end_ms)
      continue;
    t->end_ms = INT64_MAX;
    if (lk__watched_transport_has_tcp(&t->transport))
      continue;
    try_set_late(t);
    try_on_flow(t, LK_FLOW_FAILED);
    return true;
  }
  return false;
}

/* While TLS is under way, another try would cost a server a second handshake:
   it waits for the longest delay. Returns whether it does. */
static bool race_postpone_start(lk_connection *n, int64_t now_ms)
{
  lk_race *r = &n->race;
  int64_t latest_ms = r->last_start_ms + LK_RACE_MAX_DELAY_MS;

  if (now_ms >= latest_ms || !race_has_tcp(r))
    return false;
  r->next_start_ms = latest_ms;
  return true;
}

static void on_race_timer(lk_loop_timer *timer)
{
  lk_connection *n = LK_OWNER(timer, lk_connection, race.timer);
  lk_race *r = &n->race;
  int64_t now_ms = lk__clock_now(n->shared->clock);

  if (lk__driver_shared_in_child(n->shared))
    return;
  n->refs++; /* a callback of the client may free the client */
  if (now_ms >= r->give_up_ms) {
    connection_fail_transport(n, r->failed);
  } else if (!race_end_late_try(n, now_ms)) {
    bool is_due = now_ms >= r->next_start_ms && race_can_start(n);

    if (is_due && !race_postpone_start(n, now_ms))
      race_start_next(n);
    else
      race_set_timer(n);
  }
  connection_unref(n);
}

/* ---- the beginning of an attempt ----------------------------------------- */

static void connection_begin_race(lk_connection *n)
{
  n->stage = LK_STAGE_CONNECTING;
  race_begin(n);
}

static bool connection_set_addresses(lk_connection *n, const lk_address *list,
                                     size_t count)
{
  const lk_driver_shared *x = n->shared;

  return lk__address_list_set(&n->addresses, &x->mem, list, count,
                              x->fork_check);
}

/* The lk_lookup.done of `lk_connection.lookup`. It is called a second time if
   it got remembered addresses at first. */
static void connection_on_lookup(lk_lookup *l, const lk_address *list,
                                 size_t count, const char *why)
{
  lk_connection *n = LK_OWNER(l, lk_connection, lookup);

  if (lk__driver_shared_in_child(n->shared))
    return;
  n->refs++; /* a callback of the client may free the client */
  bool has_addresses = count > 0 && connection_set_addresses(n, list, count);

  if (n->stage == LK_STAGE_CONNECTING)
    race_continue(n);
  else if (has_addresses)
    connection_begin_race(n);
  else
    connection_fail(n, LK_ERR_RESOLVE, count > 0 ? "out of memory" : why);
  connection_unref(n);
}

static void connection_connect_literal(lk_connection *n,
                                       const lk_address *address)
{
  const size_t one = 1;

  if (connection_set_addresses(n, address, one))
    connection_begin_race(n);
  else
    connection_fail(n, LK_ERR_CONNECT, "out of memory");
}

/* Index 0 begins a new pass over the addresses of the name. At a later one the
   addresses that are left are tried at once, and the lookup may add others. */
static void connection_connect_name(lk_connection *n)
{
  bool has_addresses = n->address_index > 0 && n->addresses.count > 0;
  lk_resolver *r = n->shared->resolver;

  n->stage = LK_STAGE_RESOLVING;
  bool is_looked_up = lk__resolver_lookup(r, &n->lookup, n->addresses.host);

  if (has_addresses)
    connection_begin_race(n);
  else if (!is_looked_up)
    connection_fail(n, LK_ERR_RESOLVE, "out of memory");
}

/* Begin the attempt that lk_client_want() asked for in `want`. */
static void connection_start(lk_connection *n, const lk_want *want)
{
  lk_address literal;

  n->attempt = want->attempt;
  if (n->attempt == 0)
    return; /* the client wants no connection */
  n->port = want->port;
  n->address_index = want->address_index;
  n->reported = 0;
  if (!lk__address_list_set_host(&n->addresses, &n->shared->mem, want->host)) {
    connection_fail(n, LK_ERR_CONNECT, "out of memory");
    return;
  }
  n->is_literal = lk__address_parse(&literal, n->addresses.host);
  if (n->address_index == 0)
    lk__address_list_begin_pass(&n->addresses);
  if (n->is_literal)
    connection_connect_literal(n, &literal);
  else
    connection_connect_name(n);
}

/* ---- transfers ----------------------------------------------------------- */

/* Moving bytes between the client and its transport. These functions set
   `send_waits_for` and `recv_waits_for`; lk__connection_update() then has the
   loop watch the descriptor for these events. connection_send() is only
   called by lk__connection_update(); connection_receive() requests an
   update if it has changed anything. */

/* After so many reads from one connection, the loop serves the others. */
enum { MAX_READS_IN_A_ROW = 16 };

/* The event after which more can be received: LK_LOOP_READ or LK_LOOP_WRITE.
 */
static int connection_receive_events(const lk_connection *n)
{
  return n->recv_waits_for != 0 ? n->recv_waits_for : LK_LOOP_READ;
}

/* Close, and report to the client that the server has closed the
   connection. */
static void connection_closed_by_server(lk_connection *n)
{
  const int client_chooses_error = 0;

  connection_fail(n, client_chooses_error, NULL);
}

/* Receive once, into the client's memory if it offers any, else into the common
   buffer. Returns whether there may be more to receive now. */
static bool connection_receive_once(lk_connection *n)
{
  const lk_watched_transport *s = n->transport;
  uint64_t attempt = n->attempt;
  size_t got, size;
  void *room = lk_client_receive_buffer(n->client, attempt,
                                        LK_RECEIVE_BUFFER_SIZE, &size);

  if (room == NULL) {
    room = n->shared->receive_buffer;
    size = LK_RECEIVE_BUFFER_SIZE;
  }
  switch (s->type->recv(s->object, room, size, &got)) {
  case LK_FLOW_READ: return false;
  case LK_FLOW_WRITE:
    n->recv_waits_for = LK_LOOP_WRITE; /* TLS has to send first */
    lk__connection_request_update(n);
    return false;
  case LK_FLOW_END: connection_closed_by_server(n); return false;
  case LK_FLOW_FAILED: connection_fail_transport(n, n->transport); return false;
  case LK_FLOW_DONE: break;
  }
  lk__connection_request_update(n);
  lk_client_received(n->client, attempt, room, got);
  bool filled_room = got == size; /* so the descriptor may have more */

  return connection_attempt_goes_on(n, attempt) &&
         (filled_room || lk__watched_transport_has_more(s));
}

/* Receive until nothing is left, or until other connections of the loop have
   waited long enough. */
static void connection_receive(lk_connection *n)
{
  lk_loop *loop = n->shared->loop;

  if (n->recv_waits_for != 0)
    lk__connection_request_update(n); /* to watch for bytes again */
  n->recv_waits_for = 0;
  for (int i = 0; i < MAX_READS_IN_A_ROW; i++)
    if (!connection_receive_once(n))
      return;
  /* Bytes that the transport has already read do not make the descriptor
     readable, so feed_io() makes the loop call on_connection_events(). */
  if (lk__watched_transport_has_more(n->transport))
    loop->type->feed_io(loop, &n->transport->io, LK_LOOP_READ);
}

/* Send as much of the client's output as the transport takes. */
static void connection_send(lk_connection *n)
{
  const lk_watched_transport *s = n->transport;
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
  /* The server may have replied before it closed the connection: the client
     gets these replies first. */
  if (connection_attempt_goes_on(n, attempt))
    connection_receive(n);
  if (connection_attempt_goes_on(n, attempt))
    connection_fail_transport(n, n->transport);
}

static void on_connection_events(lk_loop_io *io, int events)
{
  lk_race_try *t = LK_OWNER(io, lk_race_try, transport.io);
  lk_connection *n = t->connection;

  if (lk__driver_shared_in_child(n->shared))
    return;
  n->refs++; /* a callback of the client may free the client */
  if (n->stage == LK_STAGE_CONNECTING) {
    connection_on_try_events(t, events);
  } else if ((events & LK_LOOP_ERROR) != 0) {
    connection_fail(n, LK_ERR_CONNECTION_LOSS,
                    "the event loop cannot watch the descriptor");
  } else {
    if ((events & n->send_waits_for) != 0) {
      n->send_waits_for = 0;
      lk__connection_request_update(n);
    }
    if ((events & connection_receive_events(n)) != 0)
      connection_receive(n);
  }
  connection_unref(n);
}

/* ---- probes -------------------------------------------------------------- */

static void connection_end_probe(lk_connection *n)
{
  lk__probe_connection_free(n->probe);
  n->probe = NULL;
}

static void connection_report_probe(lk_connection *n, uint64_t attempt,
                                    const char *reply, size_t len)
{
  lk__connection_request_update(n);
  lk_client_probed(n->client, attempt, reply, len);
}

static void connection_report_failed_probe(lk_connection *n, uint64_t attempt)
{
  const size_t no_reply = 0;

  connection_report_probe(n, attempt, NULL, no_reply);
}

void lk__connection_on_probe_reply(lk_connection *n, const char *reply,
                                   size_t len)
{
  uint64_t attempt = lk__probe_connection_attempt(n->probe);
  char copy[LK_PROBE_ROOM]; /* `reply` is freed with the probe */

  memcpy(copy, reply, sizeof copy);
  connection_end_probe(n);
  connection_report_probe(n, attempt, copy, len);
}

static void connection_update_probe(lk_connection *n)
{
  /* `attempt` is 0 if the client wants no probe. */
  const lk_want *want = lk_client_want_probe(n->client);
  uint64_t probed_attempt =
      n->probe == NULL ? 0 : lk__probe_connection_attempt(n->probe);

  if (want->attempt == probed_attempt)
    return;
  connection_end_probe(n);
  if (want->attempt == 0)
    return;
  n->probe = lk__probe_connection_new(n, want);
  if (n->probe == NULL)
    connection_report_failed_probe(n, want->attempt);
  else
    lk__probe_connection_start(n->probe);
}

/* ---- creation ------------------------------------------------------------ */

/* Prepare the tries of a new connection. */
static void connection_init_race(lk_connection *n)
{
  n->race.timer.on_timer = on_race_timer;
  n->race.family = AF_INET6;
  n->transport = &n->race.tries[0].transport;
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++) {
    n->race.tries[i].connection = n;
    n->race.tries[i].transport.io.on_events = on_connection_events;
  }
}

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
  n->lookup.done = connection_on_lookup;
  connection_init_race(n);
  return n;
}

/* Make the first transport. false: no memory. */
static bool connection_make_transport(lk_connection *n,
                                      const lk_transport_type *type)
{
  return lk__watched_transport_init(n->transport, n->shared->loop, type,
                                    &n->shared->mem);
}

int lk__connection_init_transport(lk_connection *n)
{
  const lk_transport_type *type = lk_transport_of(n->client);

  if (type == NULL)
    return LK_ERR_UNIMPLEMENTED;
  return connection_make_transport(n, type) ? 0 : LK_ERR_NO_MEMORY;
}

/* ---- updates and deadlines ----------------------------------------------- */

/* Whether the client can be called. */
static bool connection_has_client(const lk_connection *n)
{
  return n->client != NULL && !lk__driver_shared_in_child(n->shared);
}

static void connection_update_attempt(lk_connection *n)
{
  const lk_want *want = lk_client_want(n->client);

  if (want->attempt == n->attempt)
    return;
  connection_close(n);
  connection_start(n, want);
}

static void connection_tick(lk_connection *n)
{
  n->ticked_in_round = n->shared->round;
  lk__connection_request_update(n);
  lk_client_tick(n->client);
}

/* Have lk__connection_on_deadline() called at `at_ms` or earlier; INT64_MAX:
   never. If the heap has an entry with an earlier time, the entry is kept. At
   that time, lk__connection_on_deadline() finds that the client's deadline has
   not come, and sets the later one. */
static void connection_set_deadline(lk_connection *n, int64_t at_ms)
{
  lk_heap *heap = &n->shared->deadlines;

  if (at_ms == INT64_MAX ||
      (lk__heap_has(&n->deadline) && n->deadline.at <= at_ms))
    return;
  lk__heap_remove(heap, &n->deadline);
  lk__heap_add(heap, &n->deadline, at_ms);
}

/* TLS may have to wait until the descriptor is writable before it can receive.
   Then the descriptor is not watched for reading: it may be readable all that
   time, and the loop would spin. */
static void connection_update_watchers(lk_connection *n)
{
  int64_t at_ms = lk_client_deadline(n->client);
  bool has_work =
      n->attempt != 0 || at_ms != INT64_MAX || !lk__list_empty(&n->update);

  if (n->stage == LK_STAGE_OPEN)
    lk__loop_set_io(n->shared->loop, &n->transport->io,
                    n->send_waits_for | connection_receive_events(n));
  connection_set_deadline(n, at_ms);
  if (has_work)
    connection_ref_loop(n);
  else
    connection_unref_loop(n);
}

void lk__connection_update(lk_connection *n)
{
  const lk_driver_shared *x = n->shared;
  bool deadline_is_due = lk_client_deadline(n->client) <= x->now_ms;
  bool has_ticked = n->ticked_in_round == x->round;

  n->refs++; /* a callback of the client may free the client */
  /* The client is ticked once a round, so that a client whose deadline is
     always due does not keep the loop from its other work. */
  if (deadline_is_due && !has_ticked)
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
  n->refs++; /* a callback of the client may free the client */
  if (lk_client_deadline(n->client) <= n->shared->now_ms)
    connection_tick(n);
  else
    connection_set_deadline(n, lk_client_deadline(n->client));
  connection_unref(n);
}

/* ---- end ----------------------------------------------------------------- */

void lk__connection_abandon(lk_connection *n)
{
  connection_close(n);
  connection_end_probe(n);
  lk__list_remove(&n->update);
  lk__heap_remove(&n->shared->deadlines, &n->deadline);
  connection_unref_loop(n);
}

void lk__connection_detach_client(lk_connection *n)
{
  lk__connection_abandon(n);
  lk__list_remove(&n->link);
  n->client = NULL;
  connection_unref(n);
}
