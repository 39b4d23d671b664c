/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/subscription.h"

#include "sync/call.h"
#include "sync/result.h"

/* ---- watches ------------------------------------------------------------- */

lk_sync_watch *lk__sync_watch_new(lk_sync_client *c, const lk_sync_call *call)
{
  lk_sync_watch *w = lk__mem_new(&c->mem, sizeof *w);

  if (w == NULL)
    return NULL;
  w->client = c;
  w->on_event = call->on_event;
  w->arg = call->watch_arg;
  w->owned_by_caller = call->watch != NULL;
  return w;
}

/* If the caller owns the watch, `on_event` may free it. So `w` is not used
   after the callback unless this function has to free it. */
void lk__sync_watch_event(lk_client *client, lk_watch *watch,
                          const lk_event *event, void *arg)
{
  lk_sync_watch *w = arg;
  bool watch_has_ended = !w->is_persistent || event->type == LK_EVENT_ENDED;
  bool ours_to_free = watch_has_ended && !w->owned_by_caller;

  (void)client;
  (void)watch;
  if (watch_has_ended)
    w->watch = NULL;
  w->on_event(w->client, event, w->arg);
  if (ours_to_free)
    lk__sync_watch_discard(w);
}

void lk__sync_watch_discard(lk_sync_watch *w)
{
  if (w != NULL)
    lk__mem_free(&w->client->mem, w);
}

/* ---- the end of a watch -------------------------------------------------- */

static void watch_cancel_and_free(lk_sync_watch *w)
{
  if (w->watch != NULL)
    (void)lk_watch_remove(w->client->client, w->watch, NULL, NULL);
  lk__sync_watch_discard(w);
}

/** A call that frees `watch`. */
typedef struct watch_end {
  lk_blocking_call call;
  lk_sync_watch *watch;
} watch_end;

static void begin_watch_end(lk_blocking_call *b)
{
  watch_cancel_and_free(LK_OWNER(b, watch_end, call)->watch);
  lk__blocking_call_complete(b, 0);
}

void lk_sync_watch_free(lk_sync_watch *w)
{
  watch_end end = {.watch = w};

  if (w == NULL)
    return;
  bool on_thread_of_handle = lk__sync_refusal(w->client) == LK_ERR_STATE;

  if (on_thread_of_handle)
    watch_cancel_and_free(w);
  else
    (void)lk__blocking_call_do(&end.call, w->client, begin_watch_end);
}

/* ---- states of a subscription -------------------------------------------- */

/* The thread of the handle keeps the newest state until a caller takes it. */

enum subject { SUBJECT_CHILDREN, SUBJECT_DATA, SUBJECT_ROSTER };

struct lk_sync_subscription {
  lk_sync_client *client;
  size_t calls_inside; /* calls that wait; under the client's mutex */
  enum subject subject;
  lk_subscription_config config;  /* of children or data */
  lk_roster_config roster_config; /* of a roster */

  /* For the thread of the handle. Both are NULL if the subscription has ended,
     or there was no memory for a state. */
  lk_subscription *source;
  lk_roster *roster;
  bool is_new; /* no caller has taken `err` and `result` yet */
  int err;
  lk_sync_result *result;
  lk_link waiting; /* list of lk_wait, each of a next_call */
  char path[];     /* NUL-terminated */
};

/** A caller that waits for the next state. */
typedef struct next_call {
  lk_wait wait; /* in lk_sync_subscription.waiting */
  lk_sync_subscription *subscription;
  lk_sync_result *result;
} next_call;

static bool has_source(const lk_sync_subscription *s)
{
  return s->source != NULL || s->roster != NULL;
}

static void free_source(lk_sync_subscription *s)
{
  lk_subscription_free(s->source);
  lk_roster_free(s->roster);
  s->source = NULL;
  s->roster = NULL;
}

/* Gives the newest state to the first caller that waits. The error that has
   ended the source goes to all callers that wait, and to each later one. */
static void subscription_deliver(lk_sync_subscription *s)
{
  while (s->is_new && !lk__list_empty(&s->waiting)) {
    next_call *next = LK_OWNER(s->waiting.next, next_call, wait.link);
    bool has_ended = !has_source(s);

    next->result = s->result;
    s->result = NULL;
    s->is_new = has_ended;
    lk__wait_end(&next->wait, s->err);
  }
}

static bool error_is_final(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

/* Keeps the newest state for the callers. If there was no memory for a state,
   the source ends, and begin_next() starts another. */
static void subscription_keep(lk_sync_subscription *s, int err,
                              lk_sync_result *result)
{
  lk_sync_result_free(s->result);
  s->result = result;
  s->err = err;
  s->is_new = true;
  if (err == LK_ERR_NO_MEMORY || error_is_final(err))
    free_source(s);
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

static void on_entries(lk_roster *from, int err, const lk_roster_entry *entries,
                       size_t count, void *arg)
{
  lk_sync_subscription *s = arg;
  lk_sync_result *r = NULL;

  (void)from;
  if (err == 0) {
    r = lk__result_new(&s->client->mem,
                       lk__result_entries_size(entries, count));
    if (r != NULL)
      lk__result_set_entries(r, entries, count);
    else
      err = LK_ERR_NO_MEMORY;
  }
  subscription_keep(s, err, r);
}

/* ---- the creation of a subscription -------------------------------------- */

static int subscription_start(lk_sync_subscription *s)
{
  lk_client *c = s->client->client;

  s->is_new = false;
  switch (s->subject) {
  case SUBJECT_CHILDREN:
    return lk_subscribe_children(&s->source, c, s->path, &s->config, on_names,
                                 s);
  case SUBJECT_DATA:
    return lk_subscribe_data(&s->source, c, s->path, &s->config, on_data, s);
  case SUBJECT_ROSTER: break;
  }
  return lk_roster_subscribe(&s->roster, c, s->path, &s->roster_config,
                             on_entries, s);
}

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

static int check_new(lk_sync_subscription **out, const lk_sync_client *c,
                     const char *path)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lk__sync_refusal(c);

  return err == 0 && path == NULL ? LK_ERR_BAD_PATH : err;
}

/* Makes a subscription with the subject and the options of `from`. */
static int subscription_new(lk_sync_subscription **out, lk_sync_client *c,
                            const char *path, const lk_sync_subscription *from)
{
  size_t path_size = strlen(path) + 1; /* with the NUL */
  lk_sync_subscription *s = lk__mem_new(&c->mem, sizeof *s + path_size);
  subscription_call start = {.subscription = s};

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  *s = *from;
  s->client = c;
  lk__list_init(&s->waiting);
  memcpy(s->path, path, path_size);
  int err = lk__blocking_call_do(&start.call, c, begin_subscribe);

  if (err != 0)
    lk__mem_free(&c->mem, s);
  else
    *out = s;
  return err;
}

static int subscribe_to_node(lk_sync_subscription **out, lk_sync_client *c,
                             const char *path,
                             const lk_subscription_config *config,
                             enum subject subject)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_subscription_config);
  lk_sync_subscription from = {.subject = subject};
  int err = check_new(out, c, path);

  if (err == 0)
    err = lk__sync_copy_options(c, &sized, &from.config, config);
  return err != 0 ? err : subscription_new(out, c, path, &from);
}

int lk_sync_subscribe_children(lk_sync_subscription **out, lk_sync_client *c,
                               const char *path,
                               const lk_subscription_config *config)
{
  return subscribe_to_node(out, c, path, config, SUBJECT_CHILDREN);
}

int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                           const char *path,
                           const lk_subscription_config *config)
{
  return subscribe_to_node(out, c, path, config, SUBJECT_DATA);
}

int lk_sync_subscribe_roster(lk_sync_subscription **out, lk_sync_client *c,
                             const char *path, const lk_roster_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_roster_config);
  lk_sync_subscription from = {.subject = SUBJECT_ROSTER};
  int err = check_new(out, c, path);

  if (err == 0)
    err = lk__sync_copy_options(c, &sized, &from.roster_config, config);
  return err != 0 ? err : subscription_new(out, c, path, &from);
}

/* ---- the next state ------------------------------------------------------ */

static void begin_next(lk_blocking_call *b)
{
  next_call *next = LK_OWNER(b, next_call, wait.call);
  lk_sync_subscription *s = next->subscription;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && !has_source(s) && !error_is_final(s->err))
    err = subscription_start(s);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__wait_add(&next->wait, &s->waiting);
  subscription_deliver(s);
}

int lk_sync_subscription_next(lk_sync_subscription *s, lk_sync_result **out,
                              const lk_sync_call *call)
{
  next_call next = {.subscription = s};
  int err = s == NULL ? LK_ERR_BAD_ARGUMENT
                      : lk__wait_do(&next.wait, s->client, &s->calls_inside,
                                    call, begin_next);

  if (out != NULL)
    *out = next.result;
  else
    lk_sync_result_free(next.result);
  return err;
}

/* ---- the end of a subscription ------------------------------------------- */

static void subscription_end(lk_sync_subscription *s)
{
  free_source(s);
  lk_sync_result_free(s->result);
  s->result = NULL;
  s->err = LK_ERR_CLOSED;
  s->is_new = true;
  subscription_deliver(s);
}

static void begin_subscription_end(lk_blocking_call *b)
{
  subscription_end(LK_OWNER(b, subscription_call, call)->subscription);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_subscription_free(lk_sync_subscription *s)
{
  subscription_call end = {.subscription = s};

  if (s == NULL)
    return 0;
  int err = lk__blocking_call_do(&end.call, s->client, begin_subscription_end);

  if (err != 0)
    return lk__sync_free_result(s->client, err, "lk_sync_subscription_free");
  lk__sync_await_calls(s->client, &s->calls_inside);
  lk__mem_free(&s->client->mem, s);
  return 0;
}
