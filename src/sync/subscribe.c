/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/blocking_call.h"
#include "sync/call_entry.h"
#include "sync/result.h"

/* Subscriptions: the thread of the handle keeps the newest state until a caller
   takes it. */

struct lk_sync_subscription {
  lk_sync_client *client;
  size_t inside; /* calls that wait; under the client's mutex */
  bool children; /* true: of the children; false: of the data */
  lk_subscription_config config;

  /* For the thread of the handle. */
  lk_subscription *source; /* NULL: it has ended, or there was no memory */
  bool fresh;              /* no caller has taken `err` and `result` yet */
  int err;
  lk_sync_result *result;
  lk_link waiting; /* list of next_call: callers that wait for a state */
  char path[];
};

/** A caller that waits for the next state. */
typedef struct next_call {
  lk_blocking_call call;
  lk_sync_subscription *from;
  lk_link link;
  lk_sync_result *result;
} next_call;

/* ---- the thread of the handle -------------------------------------------- */

/* Gives the newest state to the first caller that waits. A final error, after
   which `source` is NULL, goes to all callers that wait and to each later one.
 */
static void subscription_deliver(lk_sync_subscription *s)
{
  while (s->fresh && !lk__list_empty(&s->waiting)) {
    next_call *t = LK_OWNER(s->waiting.next, next_call, link);

    lk__list_remove(&t->link);
    t->result = s->result;
    s->result = NULL;
    s->fresh = s->source == NULL;
    lk__blocking_call_complete(&t->call, s->err);
  }
}

static bool error_is_final(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

/* Keeps the newest state for the callers. If there was no memory for a state,
   the subscription ends, and the next call starts another. */
static void subscription_keep(lk_sync_subscription *s, int err,
                              lk_sync_result *result)
{
  lk_sync_result_free(s->result);
  s->result = result;
  s->err = err;
  s->fresh = true;
  if (err == LK_ERR_NO_MEMORY || error_is_final(err)) {
    lk_subscription_free(s->source);
    s->source = NULL;
  }
  subscription_deliver(s);
}

static void on_names(lk_subscription *from, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  lk_sync_subscription *s = arg;
  lk_sync_result *r = NULL;

  (void)from;
  if (err == 0) {
    r = lk__result_new(&s->client->mem, lk__result_names_size(names, count));
    if (r != NULL)
      lk__result_set_names(r, names, count, stat);
    else
      err = LK_ERR_NO_MEMORY;
  }
  subscription_keep(s, err, r);
}

static void on_data(lk_subscription *from, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_sync_subscription *s = arg;
  lk_sync_result *r = NULL;

  (void)from;
  if (err == 0) {
    r = lk__result_new(&s->client->mem, lk__result_data_size(data));
    if (r != NULL)
      lk__result_set_data(r, data, stat);
    else
      err = LK_ERR_NO_MEMORY;
  }
  subscription_keep(s, err, r);
}

static int subscription_start(lk_sync_subscription *s)
{
  lk_client *c = s->client->client;

  s->fresh = false;
  return s->children ? lk_subscribe_children(&s->source, c, s->path, &s->config,
                                             on_names, s)
                     : lk_subscribe_data(&s->source, c, s->path, &s->config,
                                         on_data, s);
}

static void interrupt_next(lk_blocking_call *e, int err)
{
  lk__list_remove(&LK_OWNER(e, next_call, call)->link);
  lk__blocking_call_complete(e, err);
}

static void begin_next(lk_blocking_call *e)
{
  next_call *t = LK_OWNER(e, next_call, call);
  lk_sync_subscription *s = t->from;
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err == 0 && s->source == NULL && !error_is_final(s->err))
    err = subscription_start(s);
  if (err != 0) {
    lk__blocking_call_complete(e, err);
    return;
  }
  lk__list_add(&s->waiting, &t->link);
  lk__blocking_call_allow_interrupt(e, interrupt_next);
  lk__blocking_call_start_timer(e);
  subscription_deliver(s);
}

static void subscription_end(lk_sync_subscription *s)
{
  lk_subscription_free(s->source);
  s->source = NULL;
  lk_sync_result_free(s->result);
  s->result = NULL;
  s->err = LK_ERR_CLOSED;
  s->fresh = true;
  subscription_deliver(s);
}

/* ---- callers ------------------------------------------------------------- */

/** A subscription that begins or ends. */
typedef struct subscription_call {
  lk_blocking_call call;
  lk_sync_subscription *what;
} subscription_call;

static void begin_subscribe(lk_blocking_call *e)
{
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  lk__blocking_call_complete(
      e, err == 0
             ? subscription_start(LK_OWNER(e, subscription_call, call)->what)
             : err);
}

static void begin_subscription_end(lk_blocking_call *e)
{
  subscription_end(LK_OWNER(e, subscription_call, call)->what);
  lk__blocking_call_complete(e, 0);
}

static int subscription_new(lk_sync_subscription **out, lk_sync_client *c,
                            const char *path,
                            const lk_subscription_config *config, bool children)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_subscription_config);
  lk_subscription_config own;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &sized, &own, config);

  if (err != 0)
    return err;
  lk_sync_subscription *s = lk__mem_new(&c->mem, sizeof *s + strlen(path) + 1);
  subscription_call begins = {.what = s};

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->client = c;
  s->children = children;
  s->config = own;
  lk__list_init(&s->waiting);
  memcpy(s->path, path, strlen(path));
  err = lk__blocking_call_do(&begins.call, c, begin_subscribe);

  if (err != 0)
    lk__mem_free(&c->mem, s);
  else
    *out = s;
  return err;
}

int lk_sync_subscribe_children(lk_sync_subscription **out, lk_sync_client *c,
                               const char *path,
                               const lk_subscription_config *config)
{
  return subscription_new(out, c, path, config, true);
}

int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                           const char *path,
                           const lk_subscription_config *config)
{
  return subscription_new(out, c, path, config, false);
}

void lk_sync_subscription_free(lk_sync_subscription *s)
{
  subscription_call ends = {.what = s};

  if (s == NULL ||
      lk__blocking_call_do(&ends.call, s->client, begin_subscription_end) != 0)
    return;
  lk__sync_await_calls(s->client, &s->inside);
  lk__mem_free(&s->client->mem, s);
}

static int subscription_next(next_call *t, lk_sync_client *c,
                             const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&t->call, c, call);

  if (err != 0)
    return err;
  lk__list_init(&t->link);
  err = lk__blocking_call_wait(&t->call, begin_next);
  lk__blocking_call_destroy(&t->call);
  return err;
}

int lk_sync_subscription_next(lk_sync_subscription *s, lk_sync_result **out,
                              const lk_sync_call *call)
{
  lk_sync_client *c = s == NULL ? NULL : s->client;
  next_call t = {.from = s};
  int cancel_state;
  int err =
      lk__sync_enter_object(c, s == NULL ? NULL : &s->inside, &cancel_state);

  if (err == 0) {
    err = subscription_next(&t, c, call);
    lk__sync_leave_object(c, &s->inside, cancel_state);
  }
  if (out != NULL)
    *out = t.result;
  else
    lk_sync_result_free(t.result);
  return err;
}
