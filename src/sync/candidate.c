/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/blocking_call.h"
#include "sync/call_entry.h"
#include "sync/recipe.h"

/* Candidates of elections. The thread of the handle runs them, and stores for
   all threads whether they lead, and until when. */

#define NOT_SURE INT64_MIN /* a deadline that has passed at any time */

struct lk_sync_candidate {
  lk_sync_client *client;
  size_t calls_inside; /* calls that wait; under the client's mutex */
  void (*on_event)(lk_sync_candidate *c, const lk_candidate_event *event,
                   void *arg);
  void *arg;
  lk_sync_lock *lock; /* of lk_sync_candidate_new(); or NULL */

  /* Written by the thread of the handle, read by all. */
  _Atomic(int64_t) sure_until_ms;     /* the lease deadline, or NOT_SURE */
  _Atomic(int64_t) lease_deadline_ms; /* INT64_MIN: it does not lead */
  _Atomic(uint64_t) term;             /* 0: it does not lead */
  atomic_int state;                   /* lk_candidate_state */

  /* For the thread of the handle. */
  lk_candidate *source;  /* NULL: it is being freed */
  lk_recipe_lock recipe; /* with `lock`: what `source` is a candidate for */
  lk_listener listener;  /* for new lease deadlines */
  int end_err;           /* why it has ended; 0: it has not */
  lk_link waiting;       /* list of candidate_wait */
};

/** A caller that waits until the candidate leads, or until it does not. */
typedef struct candidate_wait {
  lk_blocking_call call;
  lk_sync_candidate *candidate;
  bool until_elected;
  lk_link link; /* in lk_sync_candidate.waiting */
} candidate_wait;

/* ---- the thread of the handle -------------------------------------------- */

static bool wait_is_over(const lk_sync_candidate *c, const candidate_wait *w)
{
  bool leads = atomic_load(&c->sure_until_ms) != NOT_SURE;

  return leads == w->until_elected;
}

static void candidate_end_wait(candidate_wait *w, int err)
{
  lk__list_remove(&w->link);
  lk__blocking_call_complete(&w->call, err);
}

/* Complete the waits that are over, and, unless `err` is 0, the others with
   that error. A caller may free its wait as soon as that is completed. */
static void candidate_end_waits(lk_sync_candidate *c, int err)
{
  lk_link *next;

  for (lk_link *l = c->waiting.next; l != &c->waiting; l = next) {
    candidate_wait *w = LK_OWNER(l, candidate_wait, link);

    next = l->next;
    if (wait_is_over(c, w))
      candidate_end_wait(w, 0);
    else if (err != 0)
      candidate_end_wait(w, err);
  }
}

/* Store the state for all threads. A doubt is stored before anything else. */
static void candidate_publish(lk_sync_candidate *c)
{
  const lk_lock *lock = lk_candidate_lock(c->source);
  lk_candidate_state state = lk_candidate_get_state(c->source);
  int64_t deadline_ms = lk_lock_deadline(lock);

  if (state != LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, NOT_SURE);
  atomic_store(&c->term, lk_lock_token(lock));
  atomic_store(&c->lease_deadline_ms, deadline_ms);
  atomic_store(&c->state, (int)state);
  if (state == LK_CANDIDATE_LEADING)
    atomic_store(&c->sure_until_ms, deadline_ms);
}

static void on_candidate_event(lk_candidate *source,
                               const lk_candidate_event *event, void *arg)
{
  lk_sync_candidate *c = arg;

  (void)source;
  if (event->type == LK_CANDIDATE_EVENT_ENDED)
    c->end_err = event->err;
  candidate_publish(c);
  if (c->on_event != NULL)
    c->on_event(c, event, c->arg);
  candidate_end_waits(c, c->end_err);
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
    candidate_publish(c);
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
  candidate_publish(c);
  lk__blocking_call_complete(b, err);
}

static void begin_resign(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  lk_candidate_resign(c->source);
  candidate_publish(c);
  candidate_end_waits(c, LK_ERR_CANCELLED);
  lk__blocking_call_complete(b, 0);
}

static void begin_free(lk_blocking_call *b)
{
  lk_sync_candidate *c = LK_OWNER(b, candidate_call, call)->candidate;

  atomic_store(&c->sure_until_ms, NOT_SURE);
  lk_client_detach(c->client->client, &c->listener);
  lk_candidate_free(c->source);
  lk__recipe_lock_free(&c->recipe);
  c->source = NULL;
  candidate_end_waits(c, LK_ERR_CLOSED);
  lk__blocking_call_complete(b, 0);
}

/* ---- waits ----------------------------------------------------------------
 */

static void interrupt_wait(lk_blocking_call *b, int err)
{
  candidate_end_wait(LK_OWNER(b, candidate_wait, call), err);
}

static void begin_wait(lk_blocking_call *b)
{
  candidate_wait *w = LK_OWNER(b, candidate_wait, call);
  lk_sync_candidate *c = w->candidate;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && w->until_elected)
    err = lk_candidate_start(c->source);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  candidate_publish(c);
  lk__list_add(&c->waiting, &w->link);
  lk__blocking_call_allow_interrupt(b, interrupt_wait);
  lk__blocking_call_start_timer(b);
  candidate_end_waits(c, c->end_err);
}

static int wait_inside(candidate_wait *w, lk_sync_client *client,
                       const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&w->call, client, call);

  if (err != 0)
    return err;
  lk__list_init(&w->link);
  err = lk__blocking_call_wait(&w->call, begin_wait);
  lk__blocking_call_destroy(&w->call);
  return err;
}

static int candidate_wait_until(lk_sync_candidate *c, bool elected,
                                const lk_sync_call *call)
{
  lk_sync_client *client = c == NULL ? NULL : c->client;
  candidate_wait w = {.candidate = c, .until_elected = elected};
  int cancel_state;
  int err = lk__sync_enter_object(client, c == NULL ? NULL : &c->calls_inside,
                                  &cancel_state);

  if (err != 0)
    return err;
  err = wait_inside(&w, client, call);
  lk__sync_leave_object(client, &c->calls_inside, cancel_state);
  return err;
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
  atomic_init(&c->sure_until_ms, NOT_SURE);
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
  lk__mem_free(&c->client->mem, c);
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

/* ---- without waiting ------------------------------------------------------
 */

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

  return sure_until_ms != NOT_SURE &&
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
