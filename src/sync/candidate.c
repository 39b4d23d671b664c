/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call_entry.h"
#include "sync/candidate.h"
#include "sync/candidate_state.h"
#include "sync/candidate_wait.h"

/* Candidates of elections: how they are made and freed, take part and resign.
 */

/* ---- the thread of the handle -------------------------------------------- */

static void on_candidate_event(lk_candidate *source,
                               const lk_candidate_event *event, void *arg)
{
  lk_sync_candidate *c = arg;

  (void)source;
  if (event->type == LK_CANDIDATE_EVENT_ENDED)
    c->end_err = event->err;
  lk__sync_candidate_publish(c);
  if (c->on_event != NULL)
    c->on_event(c, event, c->arg);
  lk__sync_candidate_end_waits(c, c->end_err);
}

/* Events that candidates do not have go to the callback of the lock. */
static void on_recipe_event(lk_lock *recipe, const lk_lock_event *event,
                            void *arg)
{
  const lk_sync_candidate *c = arg;

  if (c->lock->on_event != NULL)
    c->lock->on_event(c->lock, event, lk_lock_token(recipe), c->lock->arg);
}

/* The session lease has handled the reply before this listener. */
static void on_candidate_reply(lk_client *client, const lk_reply *reply,
                               void *arg)
{
  lk_sync_candidate *c = arg;

  (void)client;
  (void)reply;
  if (lk_candidate_get_state(c->source) == LK_CANDIDATE_LEADING)
    lk__sync_candidate_publish(c);
}

/* ---- calls that need the thread of the handle -----------------------------
 */

/** A call that the thread of the handle completes at once. */
typedef struct candidate_call {
  lk_blocking_call call;
  lk_sync_candidate *candidate;
  /* For a constructor. */
  const char *path;
  lk_layout layout;
  const lk_lock_config *lock;
  const lk_candidate_config *config;
} candidate_call;

static int make_for_lock(lk_sync_candidate *c,
                         const lk_candidate_config *config)
{
  lk_lock_config lock = c->lock->config;

  lock.on_event = on_recipe_event;
  lock.arg = c;
  int err = lk__recipe_lock_new(&c->recipe, c->lock, &lock);

  if (err == 0)
    err = lk_candidate_new(&c->source, c->recipe.lock, config);
  if (err != 0)
    lk__recipe_lock_free(&c->recipe);
  return err;
}

static int make_for_election(lk_sync_candidate *c, const candidate_call *call)
{
  return lk_election_new(&c->source, c->client->client, call->path,
                         call->layout, call->lock, call->config);
}

static void begin_new(lk_blocking_call *b)
{
  candidate_call *call = LK_OWNER(b, candidate_call, call);
  lk_sync_candidate *c = call->candidate;
  lk_client *client = c->client->client;
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = c->lock == NULL ? make_for_election(c, call)
                          : make_for_lock(c, call->config);
  if (err == 0) {
    c->source_lock = lk_candidate_lock(c->source);
    c->listener = (lk_listener){.reply = on_candidate_reply, .arg = c};
    lk_client_attach(client, &c->listener);
  }
  lk__blocking_call_complete(b, err);
}

static void begin_start(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = lk_candidate_start(c->source);
  lk__sync_candidate_publish(c);
  lk__blocking_call_complete(b, err);
}

static void begin_resign(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  lk_candidate_resign(c->source);
  lk__sync_candidate_publish(c);
  lk__sync_candidate_end_waits(c, LK_ERR_CANCELLED);
  lk__blocking_call_complete(b, 0);
}

static void begin_free(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  atomic_store(&c->sure_until_ms, LK_NOT_LEADING);
  c->source_lock = NULL;
  lk_client_detach(c->client->client, &c->listener);
  lk_candidate_free(c->source);
  lk__recipe_lock_free(&c->recipe);
  c->source = NULL;
  lk__sync_candidate_end_waits(c, LK_ERR_CLOSED);
  lk__blocking_call_complete(b, 0);
}

void lk__sync_candidate_unref(lk_sync_candidate *c)
{
  if (atomic_fetch_sub(&c->refs, 1) == 1)
    lk__mem_free(&c->client->mem, c);
}

/* ---- callers --------------------------------------------------------------
 */

/* Make a candidate for c->lock or, if that is NULL, as `call` says. */
static int candidate_make(lk_sync_candidate **out, lk_sync_client *client,
                          lk_sync_lock *lock, candidate_call *call,
                          const lk_sync_candidate_config *config)
{
  static const lk_sized_struct sized =
      LK_SIZED_STRUCT(lk_sync_candidate_config);
  lk_sync_candidate_config options;
  int err = lk__sync_copy_options(client, &sized, &options, config);

  if (err != 0)
    return err;
  lk_sync_candidate *c = lk__mem_new(&client->mem, sizeof *c);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  const lk_candidate_config source = {.size = sizeof source,
                                      .pause_ms = options.pause_ms,
                                      .max_pause_ms = options.max_pause_ms,
                                      .on_event = on_candidate_event,
                                      .arg = c};

  c->client = client;
  c->lock = lock;
  c->on_event = options.on_event;
  c->arg = options.arg;
  atomic_init(&c->refs, 1);
  atomic_init(&c->sure_until_ms, LK_NOT_LEADING);
  atomic_init(&c->lease_deadline_ms, INT64_MIN);
  atomic_init(&c->state, (int)LK_CANDIDATE_STOPPED);
  lk__list_init(&c->waiting);
  call->candidate = c;
  call->config = &source;
  err = lk__blocking_call_do(&call->call, client, begin_new);
  if (err != 0)
    lk__mem_free(&client->mem, c);
  else
    *out = c;
  return err;
}

static int check_new(lk_sync_candidate **out, const lk_sync_client *c)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__driver_in_child(&c->driver) ? LK_ERR_FORKED : 0;
}

int lk_sync_election_new(lk_sync_candidate **out, lk_sync_client *client,
                         const char *path, lk_layout layout,
                         const lk_lock_config *lock,
                         const lk_sync_candidate_config *config)
{
  candidate_call call = {.path = path, .layout = layout, .lock = lock};
  lk_sync_lock *no_lock = NULL;
  int err = check_new(out, client);

  if (err == 0 && path == NULL)
    err = LK_ERR_BAD_PATH;
  return err != 0 ? err : candidate_make(out, client, no_lock, &call, config);
}

int lk_sync_candidate_new(lk_sync_candidate **out, lk_sync_lock *lock,
                          const lk_sync_candidate_config *config)
{
  candidate_call call = {.path = NULL};
  int err = check_new(out, lk__sync_lock_client(lock));

  return err != 0 ? err
                  : candidate_make(out, lock->client, lock, &call, config);
}

void lk_sync_candidate_free(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  if (c == NULL)
    return;
  if (lk__blocking_call_do(&call.call, c->client, begin_free) != 0)
    return;
  lk__sync_await_calls(c->client, &c->calls_inside);
  lk__sync_candidate_unref(c);
}

int lk_sync_candidate_start(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  return lk__blocking_call_do(&call.call, c == NULL ? NULL : c->client,
                              begin_start);
}

int lk_sync_candidate_resign(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  return lk__blocking_call_do(&call.call, c == NULL ? NULL : c->client,
                              begin_resign);
}
