/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>

#include "sync/blocking_call.h"

/* Queries of a client handle. Most of them are functions that run on the thread
   of the handle. */

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
  void (*function)(lk_client *client, void *arg);
  void *arg;
} run_call;

static void begin_run(lk_blocking_call *b)
{
  run_call *run = LK_OWNER(b, run_call, call);

  run->function(b->client->client, run->arg);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_client_run_on_thread(lk_sync_client *c,
                                 void (*function)(lk_client *client, void *arg),
                                 void *arg)
{
  run_call run = {.function = function, .arg = arg};

  if (function == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__blocking_call_do(&run.call, c, begin_run);
}

/** Argument and result of lk_sync_client_set_hosts(). */
typedef struct hosts_change {
  const char *hosts;
  int err; /**< the result of lk_client_set_hosts() */
} hosts_change;

static void set_hosts(lk_client *client, void *arg)
{
  hosts_change *change = arg;

  change->err = lk_client_set_hosts(client, change->hosts);
}

int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts)
{
  hosts_change change = {.hosts = hosts};
  int err = lk_sync_client_run_on_thread(c, set_hosts, &change);

  return err == 0 ? change.err : err;
}

/** Arguments and results of lk_sync_client_last_error() and
    lk_sync_client_tls_cause(). */
typedef struct last_error_query {
  char *text;  /**< filled with the text of the error */
  size_t size; /**< of `text`; 0: the text is not wanted */
  int err;     /**< the last error of the client */
  lk_tls_cause cause;
} last_error_query;

static void read_last_error(lk_client *client, void *arg)
{
  last_error_query *q = arg;
  const char *text;

  q->err = lk_client_last_error(client, &text);
  q->cause = lk_client_tls_cause(client);
  if (q->size > 0)
    snprintf(q->text, q->size, "%s", text);
}

int lk_sync_client_last_error(lk_sync_client *c, char *text, size_t size)
{
  last_error_query q = {.text = text, .size = size};

  if (text == NULL && size > 0)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk_sync_client_run_on_thread(c, read_last_error, &q);

  if (err != 0 && size > 0)
    text[0] = '\0';
  return err == 0 ? q.err : err;
}

lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c)
{
  last_error_query q = {.cause = LK_TLS_OTHER}; /* stays after a failure */

  (void)lk_sync_client_run_on_thread(c, read_last_error, &q);
  return q.cause;
}
