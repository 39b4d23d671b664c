/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>

#include "sync/blocking_call.h"

/* Queries of a client handle, and functions that run on its thread. */

lk_state lk_sync_client_state(const lk_sync_client *c)
{
  return c == NULL ? LK_STATE_CLOSED : (lk_state)atomic_load(&c->state);
}

int64_t lk_sync_client_clock(const lk_sync_client *c)
{
  return c == NULL ? 0 : lk__driver_clock(&c->driver);
}

/** A function that is called on the thread of the handle. */
typedef struct run_call {
  lk_blocking_call call;
  void (*what)(lk_client *client, void *arg);
  void *arg;
} run_call;

static void begin_run(lk_blocking_call *e)
{
  run_call *v = LK_OWNER(e, run_call, call);

  v->what(e->client->client, v->arg);
  lk__blocking_call_complete(e, 0);
}

int lk_sync_client_run_on_thread(lk_sync_client *c,
                                 void (*what)(lk_client *client, void *arg),
                                 void *arg)
{
  run_call v = {.what = what, .arg = arg};

  if (what == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__blocking_call_do(&v.call, c, begin_run);
}

/** Argument and result of lk_sync_client_set_hosts(). */
typedef struct hosts_change {
  const char *hosts;
  int err;
} hosts_change;

static void set_hosts(lk_client *client, void *arg)
{
  hosts_change *r = arg;

  r->err = lk_client_set_hosts(client, r->hosts);
}

int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts)
{
  hosts_change r = {.hosts = hosts};
  int err = lk_sync_client_run_on_thread(c, set_hosts, &r);

  return err == 0 ? r.err : err;
}

/** Arguments and results of lk_sync_client_last_error() and
    lk_sync_client_tls_cause(). */
typedef struct last_error {
  char *text;
  size_t size;
  int err;
  lk_tls_cause cause;
} last_error;

static void read_last_error(lk_client *client, void *arg)
{
  last_error *q = arg;
  const char *text;

  q->err = lk_client_last_error(client, &text);
  q->cause = lk_client_tls_cause(client);
  if (q->size > 0)
    snprintf(q->text, q->size, "%s", text);
}

int lk_sync_client_last_error(lk_sync_client *c, char *text, size_t size)
{
  last_error q = {.text = text, .size = size};

  if (text == NULL && size > 0)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk_sync_client_run_on_thread(c, read_last_error, &q);

  if (err != 0 && size > 0)
    text[0] = '\0';
  return err == 0 ? q.err : err;
}

lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c)
{
  last_error q = {.cause = LK_TLS_OTHER};

  (void)lk_sync_client_run_on_thread(c, read_last_error, &q);
  return q.cause;
}
