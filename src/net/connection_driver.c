/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection_driver.h"

#include <string.h>

#include "base/mem.h"
#include "net/connection_attempt.h"
#include "net/connection_transfer.h"

static void on_connection_events(lk_loop_io *io, int events)
{
  lk_race_try *t = LK_OWNER(io, lk_race_try, transport.io);
  lk_connection *n = t->connection;

  if (lk__driver_shared_in_child(n->shared))
    return;
  n->refs++; /* a callback of the client may free the client */
  if (n->stage == LK_STAGE_CONNECTING) {
    lk__connection_on_try_events(t, events);
  } else if ((events & LK_LOOP_ERROR) != 0) {
    lk__connection_fail(n, LK_ERR_CONNECTION_LOSS,
                        "the event loop cannot watch the descriptor");
  } else {
    if ((events & n->send_waits_for) != 0) {
      n->send_waits_for = 0;
      lk__connection_request_update(n);
    }
    if ((events & lk__connection_receive_events(n)) != 0)
      lk__connection_receive(n);
  }
  lk__connection_unref(n);
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

static void on_probe_done(void *arg, const char *reply, size_t len)
{
  lk_connection *n = arg;
  uint64_t attempt = lk__probe_connection_attempt(n->probe);
  char copy[LK_PROBE_ROOM]; /* `reply` is freed with the probe */

  memcpy(copy, reply, sizeof copy);
  connection_end_probe(n);
  connection_report_probe(n, attempt, copy, len);
}

static void connection_update_probe(lk_connection *n)
{
  lk_want want; /* `attempt` is 0 if the client wants no probe */
  uint64_t probed_attempt =
      n->probe == NULL ? 0 : lk__probe_connection_attempt(n->probe);

  lk_client_want_probe(n->client, &want);
  if (want.attempt == probed_attempt)
    return;
  connection_end_probe(n);
  if (want.attempt == 0)
    return;
  n->probe = lk__probe_connection_new(n->shared, n->client, n->transport->type,
                                      &want, on_probe_done, n);
  if (n->probe == NULL)
    connection_report_failed_probe(n, want.attempt);
  else
    lk__probe_connection_start(n->probe);
}

/* ---- creation and end ---------------------------------------------------- */

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
  n->lookup.done = lk__connection_on_lookup;
  lk__connection_init_race(n, on_connection_events);
  return n;
}

int lk__connection_init_transport(lk_connection *n)
{
  const lk_transport_type *type = lk_transport_of(n->client);

  if (type == NULL)
    return LK_ERR_UNIMPLEMENTED;
  return lk__connection_make_transport(n, type) ? 0 : LK_ERR_NO_MEMORY;
}

void lk__connection_abandon(lk_connection *n)
{
  lk__connection_close(n);
  connection_end_probe(n);
  lk__list_remove(&n->update);
  lk__heap_remove(&n->shared->deadlines, &n->deadline);
  lk__connection_release_loop(n);
}

void lk__connection_detach_client(lk_connection *n)
{
  lk__connection_abandon(n);
  lk__list_remove(&n->link);
  n->client = NULL;
  lk__connection_unref(n);
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
  lk__connection_close(n);
  lk__connection_start(n, &want);
}

static void connection_tick(lk_connection *n)
{
  n->ticked_in_round = n->shared->round;
  lk__connection_request_update(n);
  lk_client_tick(n->client);
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
                    n->send_waits_for | lk__connection_receive_events(n));
  lk__connection_set_deadline(n, at_ms);
  if (has_work)
    lk__connection_hold_loop(n);
  else
    lk__connection_release_loop(n);
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
    lk__connection_send(n);
  if (connection_has_client(n))
    connection_update_watchers(n);
  lk__connection_unref(n);
}

void lk__connection_on_deadline(lk_connection *n)
{
  n->refs++; /* a callback of the client may free the client */
  if (lk_client_deadline(n->client) <= n->shared->now_ms)
    connection_tick(n);
  else
    lk__connection_set_deadline(n, lk_client_deadline(n->client));
  lk__connection_unref(n);
}
