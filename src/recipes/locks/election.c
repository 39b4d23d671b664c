/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/leader.h>

#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/locks/lock.h"
#include "recipes/retry.h"

/**
 * @file
 * A candidate of an election: it acquires a lock again and again, and leads
 * while it holds the lock.
 */

enum {
  DEFAULT_PAUSE_MS = 100,
  DEFAULT_MAX_PAUSE_MS = 10 * 1000,
  LONGEST_PAUSE_MS = 3600 * 1000
};

typedef enum candidate_state {
  CANDIDATE_STOPPED,
  CANDIDATE_PAUSING,   /* before the next acquire */
  CANDIDATE_ACQUIRING, /* an acquire is under way */
  CANDIDATE_LEADING,
  CANDIDATE_UNSURE
} candidate_state;

struct lk_candidate {
  lk_session_lease *lease;
  lk_lock *lock;
  bool owns_lock; /* free the lock with the candidate */
  /* The callback of the lock's user, in whose place the candidate's is set. */
  void (*on_lock_event)(lk_lock *l, const lk_lock_event *event, void *arg);
  void *lock_arg;
  void (*on_event)(lk_candidate *c, const lk_candidate_event *event, void *arg);
  void *arg;
  candidate_state state;
  uint64_t term;      /* while it leads */
  int64_t elected_ms; /* when the term began */
  lk_backoff backoff;
  lk_retry_pause pause; /* runs in CANDIDATE_PAUSING */
  unsigned callbacks_running;
  bool freeing; /* destroy the candidate when `callbacks_running` is 0 */
};

/* ---- callbacks of the user ----------------------------------------------- */

static void candidate_destroy(lk_candidate *c)
{
  lk_session_lease *lease = c->lease;

  lk__mem_free(&lease->mem, c);
  lk__client_unref(lease->client);
}

static void candidate_enter(lk_candidate *c)
{
  c->callbacks_running++;
}

static void candidate_leave(lk_candidate *c)
{
  if (--c->callbacks_running == 0 && c->freeing)
    candidate_destroy(c);
}

static void candidate_notify(lk_candidate *c, lk_candidate_event event)
{
  if (c->on_event != NULL && !c->freeing)
    c->on_event(c, &event, c->arg);
}

static lk_candidate_event candidate_event(const lk_candidate *c,
                                          lk_candidate_event_type type)
{
  return (lk_candidate_event){
      .type = type, .term = c->term, .deadline_ms = lk_lock_deadline(c->lock)};
}

/* ---- creation ------------------------------------------------------------ */

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg);

/* Set the pauses. false: an option is out of its bounds. */
static bool candidate_set_pauses(lk_candidate *c,
                                 const lk_candidate_config *config)
{
  int32_t first = config->pause_ms == 0 ? DEFAULT_PAUSE_MS : config->pause_ms;
  int32_t largest = config->max_pause_ms;

  if (largest == 0)
    largest = first > DEFAULT_MAX_PAUSE_MS ? first : DEFAULT_MAX_PAUSE_MS;
  c->backoff = (lk_backoff){.first_ms = first, .max_ms = largest};
  return first > 0 && first <= largest && largest <= LONGEST_PAUSE_MS;
}

static void candidate_take_lock(lk_candidate *c, lk_lock *lock)
{
  c->lock = lock;
  c->on_lock_event = lock->on_event;
  c->lock_arg = lock->arg;
  lock->on_event = on_lock_event;
  lock->arg = c;
}

int lk_candidate_new(lk_candidate **out, lk_lock *lock,
                     const lk_candidate_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_candidate_config);
  lk_session_lease *lease = lock->lease;
  lk_candidate_config options;

  *out = NULL;
  int err = lk__client_copy_options(lease->client, &sized, &options, config);

  if (err != 0)
    return err;
  if (lk_lock_get_state(lock) != LK_LOCK_IDLE ||
      lock->on_event == on_lock_event)
    return LK_ERR_STATE;
  lk_candidate *c = lk__mem_new(&lease->mem, sizeof *c);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  if (!candidate_set_pauses(c, &options)) {
    lk__mem_free(&lease->mem, c);
    return LK_ERR_BAD_ARGUMENT;
  }
  c->lease = lease;
  lk__client_ref(lease->client);
  c->on_event = options.on_event;
  c->arg = options.arg;
  candidate_take_lock(c, lock);
  *out = c;
  return 0;
}

/* Have the candidate free its lock when it is freed itself. */
static void candidate_own_lock(lk_candidate *c)
{
  c->owns_lock = true;
}

int lk_election_new(lk_candidate **out, lk_client *client, const char *path,
                    lk_layout layout, const lk_lock_config *lock,
                    const lk_candidate_config *config)
{
  lk_lock_config options;
  lk_lock *l;

  *out = NULL;
  int err = lk__lock_config_copy(client, &options, lock);

  if (err != 0)
    return err;
  options.layout = layout;
  err = lk__lock_make(&l, client, path, &options, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  err = lk_candidate_new(out, l, config);
  if (err != 0) {
    lk_lock_free(l);
    return err;
  }
  candidate_own_lock(*out);
  return 0;
}

/* ---- pauses and acquires ------------------------------------------------- */

static void on_pause_over(void *arg, int err);

/* Start a pause before the next acquire. Returns its length. */
static int64_t candidate_pause(lk_candidate *c)
{
  lk_client *client = c->lease->client;
  int64_t ms = lk__backoff_draw(&c->backoff, client);

  c->state = CANDIDATE_PAUSING;
  lk__retry_pause_until(&c->pause, client, lk_client_clock(client) + ms,
                        on_pause_over, c);
  return ms;
}

static void candidate_end(lk_candidate *c, int err)
{
  c->state = CANDIDATE_STOPPED;
  candidate_notify(
      c, (lk_candidate_event){.type = LK_CANDIDATE_EVENT_ENDED, .err = err});
}

/* An acquire has failed with `err`. */
static void candidate_retry(lk_candidate *c, int err)
{
  int end_err = lk__client_end_err(c->lease->client);

  if (end_err != 0) {
    candidate_end(c, end_err);
    return;
  }
  int64_t ms = candidate_pause(c);

  candidate_notify(c, (lk_candidate_event){.type = LK_CANDIDATE_EVENT_RETRYING,
                                           .err = err,
                                           .retry_ms = ms});
}

static void candidate_elected(lk_candidate *c)
{
  c->state = CANDIDATE_LEADING;
  c->term = lk_lock_token(c->lock);
  c->elected_ms = lk_client_clock(c->lease->client);
  candidate_notify(c, candidate_event(c, LK_CANDIDATE_EVENT_ELECTED));
}

/* A candidate that has resigned meanwhile ignores the end of its acquire. */
static void on_acquired(lk_lock *l, int err, void *arg)
{
  lk_candidate *c = arg;

  (void)l;
  if (c->state != CANDIDATE_ACQUIRING)
    return;
  candidate_enter(c);
  if (err == 0)
    candidate_elected(c);
  else
    candidate_retry(c, err);
  candidate_leave(c);
}

/* Returns 0, or the error with which the acquire was refused. */
static int candidate_acquire(lk_candidate *c)
{
  int err = lk_lock_acquire(c->lock, LK_NO_LIMIT, on_acquired, c);

  if (err == 0)
    c->state = CANDIDATE_ACQUIRING;
  return err;
}

/* `err`: the client has ended. */
static void on_pause_over(void *arg, int err)
{
  lk_candidate *c = arg;

  candidate_enter(c);
  if (err != 0) {
    candidate_end(c, err);
  } else {
    err = candidate_acquire(c);
    if (err != 0)
      candidate_retry(c, err);
  }
  candidate_leave(c);
}

/* ---- events of the lock -------------------------------------------------- */

static void candidate_unsure(lk_candidate *c)
{
  c->state = CANDIDATE_UNSURE;
  candidate_notify(c, candidate_event(c, LK_CANDIDATE_EVENT_UNSURE));
}

static void candidate_renewed(lk_candidate *c)
{
  c->state = CANDIDATE_LEADING;
  candidate_notify(c, candidate_event(c, LK_CANDIDATE_EVENT_RENEWED));
}

/* A long term shows that there is no reason for long pauses. */
static void candidate_end_term(lk_candidate *c)
{
  int64_t now = lk_client_clock(c->lease->client);

  if (now - c->elected_ms >= c->backoff.max_ms)
    lk__backoff_reset(&c->backoff);
}

static void candidate_deposed(lk_candidate *c, int err)
{
  int end_err = lk__client_end_err(c->lease->client);
  int64_t retry_ms = 0;

  (void)lk_lock_release(c->lock, NULL, NULL); /* makes the lost lock idle */
  if (end_err == 0) {
    candidate_end_term(c);
    retry_ms = candidate_pause(c);
  } else {
    c->state = CANDIDATE_STOPPED;
  }
  candidate_notify(c, (lk_candidate_event){.type = LK_CANDIDATE_EVENT_DEPOSED,
                                           .term = c->term,
                                           .err = err,
                                           .retry_ms = retry_ms});
  if (end_err != 0)
    candidate_end(c, end_err);
}

static void on_lock_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  lk_candidate *c = arg;

  candidate_enter(c);
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE: candidate_unsure(c); break;
  case LK_LOCK_EVENT_RENEWED: candidate_renewed(c); break;
  case LK_LOCK_EVENT_LOST: candidate_deposed(c, event->err); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_UNWATCHED:
  case LK_LOCK_EVENT_REVOKED:
    if (c->on_lock_event != NULL)
      c->on_lock_event(l, event, c->lock_arg);
    break;
  }
  candidate_leave(c);
}

/* ---- calls --------------------------------------------------------------- */

/* A forked child takes part in nothing. */
static bool candidate_is_forked(const lk_candidate *c)
{
  return lk__lock_is_forked(c->lock);
}

int lk_candidate_start(lk_candidate *c)
{
  if (candidate_is_forked(c))
    return LK_ERR_FORKED;
  return c->state == CANDIDATE_STOPPED ? candidate_acquire(c) : 0;
}

void lk_candidate_resign(lk_candidate *c)
{
  candidate_state before = c->state;

  if (candidate_is_forked(c))
    return;
  c->state = CANDIDATE_STOPPED;
  switch (before) {
  case CANDIDATE_STOPPED: break;
  case CANDIDATE_PAUSING:
    lk__retry_pause_stop(&c->pause, c->lease->client);
    break;
  case CANDIDATE_ACQUIRING: lk_lock_cancel(c->lock); break;
  case CANDIDATE_LEADING:
  case CANDIDATE_UNSURE:
    candidate_enter(c);
    candidate_end_term(c);
    (void)lk_lock_release(c->lock, NULL, NULL);
    candidate_notify(c, (lk_candidate_event){.type = LK_CANDIDATE_EVENT_DEPOSED,
                                             .term = c->term});
    candidate_leave(c);
    break;
  }
}

/* ---- queries ------------------------------------------------------------- */

lk_candidate_state lk_candidate_get_state(const lk_candidate *c)
{
  if (candidate_is_forked(c))
    return LK_CANDIDATE_STOPPED;
  switch (c->state) {
  case CANDIDATE_STOPPED: break;
  case CANDIDATE_PAUSING:
  case CANDIDATE_ACQUIRING: return LK_CANDIDATE_WAITING;
  case CANDIDATE_LEADING: return LK_CANDIDATE_LEADING;
  case CANDIDATE_UNSURE: return LK_CANDIDATE_UNSURE;
  }
  return LK_CANDIDATE_STOPPED;
}

bool lk_candidate_ok(const lk_candidate *c)
{
  return lk_lock_ok(c->lock);
}

lk_lock *lk_candidate_lock(const lk_candidate *c)
{
  return c->lock;
}

const char *lk_candidate_state_text(lk_candidate_state state)
{
  switch (state) {
  case LK_CANDIDATE_STOPPED: return "stopped";
  case LK_CANDIDATE_WAITING: return "waiting";
  case LK_CANDIDATE_LEADING: return "leading";
  case LK_CANDIDATE_UNSURE: return "unsure";
  }
  return "unknown state";
}

const char *lk_candidate_event_text(lk_candidate_event_type type)
{
  switch (type) {
  case LK_CANDIDATE_EVENT_ELECTED: return "elected";
  case LK_CANDIDATE_EVENT_UNSURE: return "unsure";
  case LK_CANDIDATE_EVENT_RENEWED: return "renewed";
  case LK_CANDIDATE_EVENT_DEPOSED: return "deposed";
  case LK_CANDIDATE_EVENT_RETRYING: return "retrying";
  case LK_CANDIDATE_EVENT_ENDED: return "ended";
  }
  return "unknown event";
}

/* ---- end ----------------------------------------------------------------- */

/* Stop, and give the lock back to its user. Reports nothing. */
static void candidate_leave_lock(lk_candidate *c)
{
  c->state = CANDIDATE_STOPPED;
  if (c->owns_lock) {
    lk_lock_free(c->lock);
    return;
  }
  lk_lock_reset(c->lock);
  c->lock->on_event = c->on_lock_event;
  c->lock->arg = c->lock_arg;
}

void lk_candidate_free(lk_candidate *c)
{
  if (c == NULL || c->freeing)
    return;
  candidate_enter(c);
  c->freeing = true;
  lk__retry_pause_stop(&c->pause, c->lease->client);
  candidate_leave_lock(c);
  candidate_leave(c);
}
