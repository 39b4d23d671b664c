/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection_attempt.h"

#include <stdio.h>

#include "proto/engine/connect_timeout.h"

/* One attempt to connect: resolve the host, and race its addresses. */

/* ---- tries --------------------------------------------------------------- */

static size_t race_count_open(const lk_race *r)
{
  size_t count = 0;

  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    if (r->tries[i].open)
      count++;
  return count;
}

static void try_close(lk_race_try *t)
{
  lk__watched_transport_close(&t->transport);
  t->open = false;
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

/* ---- the timer ----------------------------------------------------------- */

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

/* ---- end ----------------------------------------------------------------- */

static void race_close(lk_connection *n)
{
  lk__loop_stop_timer(n->shared->loop, &n->race.timer);
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++)
    try_close(&n->race.tries[i]);
  n->race.failed = NULL;
}

void lk__connection_close(lk_connection *n)
{
  lk__lookup_cancel(&n->lookup);
  race_close(n);
  n->stage = LK_STAGE_NONE;
  n->send_waits_for = 0;
  n->recv_waits_for = 0;
}

bool lk__connection_attempt_goes_on(const lk_connection *n, uint64_t attempt)
{
  /* In a forked child, no attempt of the parent goes on. */
  return n->attempt == attempt && n->stage != LK_STAGE_NONE &&
         !lk__driver_shared_in_child(n->shared);
}

void lk__connection_fail(lk_connection *n, int err, const char *why)
{
  lk__connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed(n->client, n->attempt, err, why);
}

void lk__connection_closed_by_server(lk_connection *n)
{
  const int client_chooses_error = 0;

  lk__connection_fail(n, client_chooses_error, NULL);
}

void lk__connection_fail_transport(lk_connection *n,
                                   const lk_watched_transport *failed)
{
  const lk_transport *t = failed->object;

  if (t->err != LK_ERR_TLS) {
    lk__connection_fail(n, t->err, t->why);
    return;
  }
  lk__connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed_tls(n->client, n->attempt, t->cause, t->why);
}

/* ---- reports to the client ----------------------------------------------- */

/* The attempts of the client at this host are counted by lk_want.address_index:
   behind this one there is one for each address that is left. */
static uint32_t count_attempts(const lk_connection *n)
{
  return n->address_index + 1 +
         (uint32_t)lk__address_list_count_untried(&n->addresses);
}

static bool connection_report_addresses(lk_connection *n)
{
  lk_want want;
  uint64_t attempt = n->attempt;

  if (n->is_literal)
    return true;
  n->reported = count_attempts(n);
  lk__connection_request_update(n);
  lk_client_resolved(n->client, attempt, n->reported);
  if (!lk__connection_attempt_goes_on(n, attempt))
    return false;
  /* A callback may have made the client give up this attempt. */
  lk_client_want(n->client, &want);
  return want.attempt == attempt;
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
  lk_client_connected(n->client, n->attempt);
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
    lk__connection_fail_transport(n, n->race.failed);
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

void lk__connection_on_try_events(lk_race_try *t, int events)
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
  t->end_ms = now_ms + lk__connect_timeout_tcp_ms(n->client);
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
    lk__connection_fail_transport(n, r->failed);
  } else if (!race_end_late_try(n, now_ms)) {
    bool is_due = now_ms >= r->next_start_ms && race_can_start(n);

    if (is_due && !race_postpone_start(n, now_ms))
      race_start_next(n);
    else
      race_set_timer(n);
  }
  lk__connection_unref(n);
}

/* ---- beginning ----------------------------------------------------------- */

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

/* It is called a second time if it got remembered addresses at first. */
void lk__connection_on_lookup(lk_lookup *l, const lk_address *list,
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
    lk__connection_fail(n, LK_ERR_RESOLVE, count > 0 ? "out of memory" : why);
  lk__connection_unref(n);
}

static void connection_connect_literal(lk_connection *n,
                                       const lk_address *address)
{
  const size_t one = 1;

  if (connection_set_addresses(n, address, one))
    connection_begin_race(n);
  else
    lk__connection_fail(n, LK_ERR_CONNECT, "out of memory");
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
    lk__connection_fail(n, LK_ERR_RESOLVE, "out of memory");
}

void lk__connection_start(lk_connection *n, const lk_want *want)
{
  lk_address literal;

  n->attempt = want->attempt;
  if (n->attempt == 0)
    return; /* the client wants no connection */
  n->port = want->port;
  n->address_index = want->address_index;
  n->reported = 0;
  if (!lk__address_list_set_host(&n->addresses, &n->shared->mem, want->host)) {
    lk__connection_fail(n, LK_ERR_CONNECT, "out of memory");
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

/* ---- creation ------------------------------------------------------------ */

void lk__connection_init_race(lk_connection *n,
                              void (*on_events)(lk_loop_io *io, int events))
{
  n->race.timer.on_timer = on_race_timer;
  n->race.family = AF_INET6;
  n->transport = &n->race.tries[0].transport;
  for (size_t i = 0; i < LK_RACE_MAX_OPEN; i++) {
    n->race.tries[i].connection = n;
    n->race.tries[i].transport.io.on_events = on_events;
  }
}

bool lk__connection_make_transport(lk_connection *n,
                                   const lk_transport_type *type)
{
  return lk__watched_transport_init(n->transport, n->shared->loop, type,
                                    &n->shared->mem);
}
