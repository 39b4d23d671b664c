/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/blocking_call.h"
#include "sync/call_entry.h"
#include "sync/result.h"

/* Subscriptions: the thread of the handle keeps the newest state until a caller
   takes it. */

enum subject { SUBJECT_CHILDREN, SUBJECT_DATA };

struct lk_sync_subscription {
  lk_sync_client *client;
  size_t calls_inside; /* calls that wait; under the client's mutex */
  enum subject subject;
  lk_subscription_config config;

  /* For the thread of the handle. */
  lk_subscription *source; /* NULL: it has ended, or there was no memory */
  bool is_new;             /* no caller has taken `err` and `result` yet */
  int err;
  lk_sync_result *result;
  lk_link waiting; /* list of next_call: callers that wait for a state */
  char path[];     /* NUL-terminated */
};

/** A caller that waits for the next state. */
typedef struct next_call {
  lk_blocking_call call;
  lk_sync_subscription *subscription;
  lk_link link; /* in lk_sync_subscription.waiting */
  lk_sync_result *result;
} next_call;

/* ---- the thread of the handle -------------------------------------------- */

/* Gives the newest state to the first caller that waits. The error that has
   ended `source` goes to all callers that wait, and to each later one. */
static void subscription_deliver(lk_sync_subscription *s)
{
  while (s->is_new && !lk__list_empty(&s->waiting)) {
    next_call *next = LK_OWNER(s->waiting.next, next_call, link);
    bool has_ended = s->source == NULL;

    lk__list_remove(&next->link);
    next->result = s->result;
    s->result = NULL;
    s->is_new = has_ended;
    lk__blocking_call_complete(&next->call, s->err);
  }
}

static bool error_is_final(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

/* Keeps the newest state for the callers. If there was no memory for a state,
   `source` ends, and begin_next() starts another. */
static void subscription_keep(lk_sync_subscription *s, int err,
                              lk_sync_result *result)
{
  lk_sync_result_free(s->result);
  s->result = result;
  s->err = err;
  s->is_new = true;
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

  s->is_new = false;
  return s->subject == SUBJECT_CHILDREN
             ? lk_subscribe_children(&s->source, c, s->path, &s->config,
                                     on_names, s)
             : lk_subscribe_data(&s->source, c, s->path, &s->config, on_data,
                                 s);
}

static void interrupt_next(lk_blocking_call *b, int err)
{
  lk__list_remove(&LK_OWNER(b, next_call, call)->link);
  lk__blocking_call_complete(b, err);
}

static void begin_next(lk_blocking_call *b)
{
  next_call *next = LK_OWNER(b, next_call, call);
  lk_sync_subscription *s = next->subscription;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && s->source == NULL && !error_is_final(s->err))
    err = subscription_start(s);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__list_add(&s->waiting, &next->link);
  lk__blocking_call_allow_interrupt(b, interrupt_next);
  lk__blocking_call_start_timer(b);
  subscription_deliver(s);
}

static void subscription_end(lk_sync_subscription *s)
{
  lk_subscription_free(s->source);
  s->source = NULL;
  lk_sync_result_free(s->result);
  s->result = NULL;
  s->err = LK_ERR_CLOSED;
  s->is_new = true;
  subscription_deliver(s);
}

/* ---- callers ------------------------------------------------------------- */

/** A call that starts or ends `subscription`. */
typedef struct subscription_call {
  lk_blocking_call call;
  lk_sync_subscription *subscription;
} subscription_call;

static void begin_subscribe(lk_blocking_call *b)
{
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err =
        subscription_start(LK_OWNER(b, subscription_call, call)->subscription);
  lk__blocking_call_complete(b, err);
}

static void begin_subscription_end(lk_blocking_call *b)
{
  subscription_end(LK_OWNER(b, subscription_call, call)->subscription);
  lk__blocking_call_complete(b, 0);
}

static int subscription_new(lk_sync_subscription **out, lk_sync_client *c,
                            const char *path,
                            const lk_subscription_config *config,
                            enum subject subject)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_subscription_config);
  lk_subscription_config copy;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &sized, &copy, config);

  if (err != 0)
    return err;
  size_t path_size = strlen(path) + 1; /* with the NUL */
  lk_sync_subscription *s = lk__mem_new(&c->mem, sizeof *s + path_size);
  subscription_call start = {.subscription = s};

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->client = c;
  s->subject = subject;
  s->config = copy;
  lk__list_init(&s->waiting);
  memcpy(s->path, path, path_size);
  err = lk__blocking_call_do(&start.call, c, begin_subscribe);

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
  return subscription_new(out, c, path, config, SUBJECT_CHILDREN);
}

int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                           const char *path,
                           const lk_subscription_config *config)
{
  return subscription_new(out, c, path, config, SUBJECT_DATA);
}

void lk_sync_subscription_free(lk_sync_subscription *s)
{
  subscription_call end = {.subscription = s};

  if (s == NULL)
    return;
  int err = lk__blocking_call_do(&end.call, s->client, begin_subscription_end);

  if (err != 0)
    return;
  lk__sync_await_calls(s->client, &s->calls_inside);
  lk__mem_free(&s->client->mem, s);
}

static int subscription_next(next_call *next, lk_sync_client *c,
                             const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&next->call, c, call);

  if (err != 0)
    return err;
  lk__list_init(&next->link);
  err = lk__blocking_call_wait(&next->call, begin_next);
  lk__blocking_call_destroy(&next->call);
  return err;
}

int lk_sync_subscription_next(lk_sync_subscription *s, lk_sync_result **out,
                              const lk_sync_call *call)
{
  lk_sync_client *c = s == NULL ? NULL : s->client;
  next_call next = {.subscription = s};
  int cancel_state;
  int err = lk__sync_enter_object(c, s == NULL ? NULL : &s->calls_inside,
                                  &cancel_state);

  if (err == 0) {
    err = subscription_next(&next, c, call);
    lk__sync_leave_object(c, &s->calls_inside, cancel_state);
  }
  if (out != NULL)
    *out = next.result;
  else
    lk_sync_result_free(next.result);
  return err;
}
