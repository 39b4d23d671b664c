/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection_attempt.h"

/* One attempt to connect: resolve the host, choose an address, connect. */

/* ---- end ----------------------------------------------------------------- */

void lk__connection_close(lk_connection *n)
{
  lk__lookup_cancel(&n->lookup);
  lk__watched_transport_close(&n->transport);
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

void lk__connection_fail_transport(lk_connection *n)
{
  const lk_transport *t = n->transport.object;

  if (t->err != LK_ERR_TLS) {
    lk__connection_fail(n, t->err, t->why);
    return;
  }
  lk__connection_close(n);
  lk__connection_request_update(n);
  lk_client_failed_tls(n->client, n->attempt, t->cause, t->why);
}

/* ---- steps --------------------------------------------------------------- */

void lk__connection_continue_connecting(lk_connection *n, lk_flow flow)
{
  switch (flow) {
  case LK_FLOW_READ:
  case LK_FLOW_WRITE:
    (void)lk__watched_transport_watch_for(&n->transport, flow);
    return;
  case LK_FLOW_END:
    lk__connection_fail(n, LK_ERR_CONNECT, "the server closed the connection");
    return;
  case LK_FLOW_FAILED: lk__connection_fail_transport(n); return;
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
  lk__connection_continue_connecting(
      n, lk__watched_transport_connect(&n->transport, &to));
}

static void connection_connect_resolved(lk_connection *n)
{
  connection_connect(n, lk__address_list_use(&n->addresses, n->address_index));
}

static void connection_on_addresses(lk_connection *n)
{
  lk_want want;
  uint64_t attempt = n->attempt;

  lk__connection_request_update(n);
  lk_client_resolved(n->client, attempt, (uint32_t)n->addresses.count);
  if (!lk__connection_attempt_goes_on(n, attempt))
    return;
  /* A callback may have made the client give up this attempt. */
  lk_client_want(n->client, &want);
  if (want.attempt == attempt)
    connection_connect_resolved(n);
}

void lk__connection_on_lookup(lk_lookup *l, const lk_address *list,
                              size_t count, const char *why)
{
  lk_connection *n = LK_OWNER(l, lk_connection, lookup);
  lk_driver_shared *x = n->shared;

  if (lk__driver_shared_in_child(x))
    return;
  lk__lookup_cancel(l); /* remembered addresses suffice */
  n->refs++;            /* a callback of the client may free the client */
  if (count == 0)
    lk__connection_fail(n, LK_ERR_RESOLVE, why);
  else if (!lk__address_list_set(&n->addresses, &x->mem, list, count,
                                 x->fork_check))
    lk__connection_fail(n, LK_ERR_RESOLVE, "out of memory");
  else
    connection_on_addresses(n);
  lk__connection_unref(n);
}

void lk__connection_start(lk_connection *n, const lk_want *want)
{
  lk_driver_shared *x = n->shared;
  lk_address literal;

  n->attempt = want->attempt;
  if (n->attempt == 0)
    return; /* the client wants no connection */
  n->port = want->port;
  n->address_index = want->address_index;
  if (!lk__address_list_set_host(&n->addresses, &x->mem, want->host)) {
    lk__connection_fail(n, LK_ERR_CONNECT, "out of memory");
  } else if (lk__address_parse(&literal, n->addresses.host)) {
    connection_connect(n, &literal);
  } else if (n->address_index > 0 && n->addresses.count > 0) {
    /* An earlier attempt has resolved the same host. Index 0 begins a new
     * round, which resolves the host again. */
    connection_connect_resolved(n);
  } else {
    n->stage = LK_STAGE_RESOLVING;
    if (!lk__resolver_lookup(x->resolver, &n->lookup, n->addresses.host))
      lk__connection_fail(n, LK_ERR_RESOLVE, "out of memory");
  }
}
