/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/candidate.h"

#include "sync/call.h"
#include "sync/lock.h"

/* ---- the state ----------------------------------------------------------- */

/* In place of a lease deadline: the candidate does not lead for certain. */
#define LK_NOT_LEADING INT64_MIN

/* Store the state for all threads. A doubt is stored before anything else. */
static void sync_candidate_publish(lk_sync_candidate *c)
{
  const lk_lock *lock = c->source_lock;
  lk_candidate_state state = lk_candidate_get_state(c->source);
  int64_t deadline_ms = lk_lock_deadline(lock);

  if (state != LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, LK_NOT_LEADING);
  atomic_store(&c->term, lk_lock_token(lock));
  atomic_store(&c->lease_deadline_ms, deadline_ms);
  atomic_store(&c->state, (int)state);
  if (state == LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, deadline_ms);
}

/** A caller that waits until the candidate leads, or until it does not. */
typedef struct candidate_wait {
  lk_wait wait; /* in lk_sync_candidate.waiting */
  lk_sync_candidate *candidate;
  bool until_elected;
} candidate_wait;

static bool wait_is_over(const lk_sync_candidate *c, const candidate_wait *w)
{
  bool leads = atomic_load(&c->sure_until_ms) != LK_NOT_LEADING;

  return leads == w->until_elected;
}

/* Complete the waits that are over, and, unless `err` is 0, the others with
   that error. For the thread of the handle. A caller may free its wait as soon
   as that is completed. */
static void sync_candidate_end_waits(lk_sync_candidate *c, int err)
{
  lk_link *next;

  for (lk_link *l = c->waiting.next; l != &c->waiting; l = next) {
    candidate_wait *w = LK_OWNER(l, candidate_wait, wait.link);

    next = l->next;
    if (wait_is_over(c, w))
      lk__wait_end(&w->wait, 0);
    else if (err != 0)
      lk__wait_end(&w->wait, err);
  }
}

/* ---- events -------------------------------------------------------------- */

static void on_candidate_event(lk_candidate *source,
                               const lk_candidate_event *event, void *arg)
{
  lk_sync_candidate *c = arg;

  (void)source;
  if (event->type == LK_CANDIDATE_EVENT_ENDED)
    c->end_err = event->err;
  sync_candidate_publish(c);
  if (c->on_event != NULL)
    c->on_event(c, event, c->arg);
  sync_candidate_end_waits(c, c->end_err);
}

/* The session lease has handled the reply before this listener. */
static void on_candidate_reply(lk_client *client, const lk_reply *reply,
                               void *arg)
{
  lk_sync_candidate *c = arg;

  (void)client;
  (void)reply;
  if (lk_candidate_get_state(c->source) == LK_CANDIDATE_LEADING)
    sync_candidate_publish(c);
}

/* ---- creation ------------------------------------------------------------ */

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
  if (c->lock->inner == NULL)
    return LK_ERR_CLOSED;
  if (!lk__sync_lock_begin_candidate(c->lock))
    return LK_ERR_STATE;
  int err = lk_candidate_new(&c->source, c->lock->inner, config);

  if (err != 0)
    lk__sync_lock_end_use(c->lock);
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
    c->listener = (lk_listener){
        .size = sizeof(lk_listener), .reply = on_candidate_reply, .arg = c};
    lk_client_attach(client, &c->listener);
  }
  lk__blocking_call_complete(b, err);
}

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
  int cancel_state;
  int err = check_new(out, lk__sync_lock_client(lock));

  if (err == 0)
    err = lk__sync_lock_enter(lock, &cancel_state);
  if (err != 0)
    return err;
  err = candidate_make(out, lock->client, lock, &call, config);
  lk__sync_lock_leave(lock, cancel_state);
  return err;
}

/* ---- start and resign ---------------------------------------------------- */

static void begin_start(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = lk_candidate_start(c->source);
  sync_candidate_publish(c);
  lk__blocking_call_complete(b, err);
}

int lk_sync_candidate_start(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  return lk__blocking_call_do(&call.call, c == NULL ? NULL : c->client,
                              begin_start);
}

static void begin_resign(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  lk_candidate_resign(c->source);
  sync_candidate_publish(c);
  sync_candidate_end_waits(c, LK_ERR_CANCELLED);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_candidate_resign(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  return lk__blocking_call_do(&call.call, c == NULL ? NULL : c->client,
                              begin_resign);
}

/* ---- waiting for an event ------------------------------------------------ */

static void begin_wait(lk_blocking_call *b)
{
  candidate_wait *w = LK_OWNER(b, candidate_wait, wait.call);
  lk_sync_candidate *c = w->candidate;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && c->source == NULL) { /* it was freed meanwhile */
    lk__blocking_call_complete(b, w->until_elected ? LK_ERR_CLOSED : 0);
    return;
  }
  if (err == 0 && w->until_elected)
    err = lk_candidate_start(c->source);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  sync_candidate_publish(c);
  lk__wait_add(&w->wait, &c->waiting);
  sync_candidate_end_waits(c, c->end_err);
}

static int candidate_wait_until(lk_sync_candidate *c, bool elected,
                                const lk_sync_call *call)
{
  candidate_wait w = {.candidate = c, .until_elected = elected};

  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__wait_do(&w.wait, c->client, &c->calls_inside, call, begin_wait);
}

int lk_sync_candidate_wait_elected(lk_sync_candidate *c,
                                   const lk_sync_call *call)
{
  return candidate_wait_until(c, true, call);
}

int lk_sync_candidate_wait_unsure(lk_sync_candidate *c,
                                  const lk_sync_call *call)
{
  return candidate_wait_until(c, false, call);
}

/* ---- queries ------------------------------------------------------------- */

/* Whether no candidate leads here: there is none, or this is a child process.
 */
static bool is_unusable(const lk_sync_candidate *c)
{
  return c == NULL || lk__driver_in_child(&c->client->driver);
}

/* The clock is read last, as in lk_sync_lock_ok(). */
bool lk_sync_candidate_ok(const lk_sync_candidate *c)
{
  if (is_unusable(c))
    return false;
  int64_t sure_until_ms =
      atomic_load_explicit(&c->sure_until_ms, memory_order_acquire);

  return sure_until_ms != LK_NOT_LEADING &&
         lk__driver_clock(&c->client->driver) < sure_until_ms;
}

int64_t lk_sync_candidate_deadline(const lk_sync_candidate *c)
{
  return is_unusable(c) ? INT64_MIN : atomic_load(&c->lease_deadline_ms);
}

uint64_t lk_sync_candidate_term(const lk_sync_candidate *c)
{
  return is_unusable(c) ? 0 : atomic_load(&c->term);
}

lk_candidate_state lk_sync_candidate_get_state(const lk_sync_candidate *c)
{
  return is_unusable(c) ? LK_CANDIDATE_STOPPED
                        : (lk_candidate_state)atomic_load(&c->state);
}

/* ---- end ----------------------------------------------------------------- */

void lk__sync_candidate_unref(lk_sync_candidate *c)
{
  if (atomic_fetch_sub(&c->refs, 1) == 1)
    lk__mem_free(&c->client->mem, c);
}

static void begin_free(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  atomic_store(&c->sure_until_ms, LK_NOT_LEADING);
  c->source_lock = NULL;
  lk_client_detach(c->client->client, &c->listener);
  lk_candidate_free(c->source);
  c->source = NULL;
  if (c->lock != NULL)
    lk__sync_lock_end_use(c->lock);
  sync_candidate_end_waits(c, LK_ERR_CLOSED);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_candidate_free(lk_sync_candidate *c)
{
  candidate_call call = {.candidate = c};

  if (c == NULL)
    return 0;
  int err = lk__blocking_call_do(&call.call, c->client, begin_free);

  if (err != 0)
    return lk__sync_free_result(c->client, err, "lk_sync_candidate_free");
  lk__sync_await_calls(c->client, &c->calls_inside);
  lk__sync_candidate_unref(c);
  return 0;
}
