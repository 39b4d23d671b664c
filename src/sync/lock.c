/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock.h"

#include "sync/call.h"
#include "sync/request.h"

/* In place of a deadline: the lock is unsure, or not held. */
#define LK_NOT_HELD INT64_MIN

/* ---- creation ------------------------------------------------------------ */

/* A callback of `config` would get an lk_lock, which no thread may use. */
int lk__sync_lock_config_copy(lk_sync_client *c, lk_lock_config *out,
                              const lk_lock_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_lock_config);

  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &sized, out, config);

  out->size = sizeof *out;
  return err == 0 && out->on_event != NULL ? LK_ERR_BAD_ARGUMENT : err;
}

static void begin_release_task(lk_task *t);

void lk__sync_lock_init(lk_sync_lock *l, lk_sync_client *c,
                        lk_sync_lock_event_cb on_event, void *arg)
{
  lk__list_init(&l->release.link);
  l->client = c;
  l->on_event = on_event;
  l->arg = arg;
  l->release.begin = begin_release_task;
  l->doubt_fd = LK_FLAG_FD_NONE;
  atomic_init(&l->use, LK_USE_NONE);
  atomic_init(&l->count, 0);
  atomic_init(&l->sure_until_ms, LK_NOT_HELD);
  atomic_init(&l->lease_deadline_ms, LK_NOT_HELD);
  atomic_init(&l->token, 0);
  lk__list_init(&l->link);
  lk__list_init(&l->waiting);
}

int lk__sync_lock_make(lk_blocking_call *b, lk_sync_client *c,
                       void (*make)(lk_blocking_call *b))
{
  const lk_sync_call *no_options = NULL;
  bool on_thread_of_handle = lk__sync_refusal(c) == LK_ERR_STATE;

  if (!on_thread_of_handle)
    return lk__blocking_call_do(b, c, make);
  int err = lk__blocking_call_init(b, c, no_options);

  if (err != 0)
    return err;
  make(b);
  lk__blocking_call_destroy(b);
  return b->err;
}

int lk__sync_lock_refusal(lk_sync_client *c)
{
  pthread_mutex_lock(&c->mutex);
  bool freeing = c->freeing;

  pthread_mutex_unlock(&c->mutex);
  return freeing ? LK_ERR_CLOSED : 0;
}

/** The arguments of a constructor. */
typedef struct new_call {
  lk_blocking_call call;
  lk_sync_lock *lock;
  /** Make the lk_lock. */
  int (*make)(const struct new_call *n, lk_lock **out);
  lk_lock_config config;
  const char *path;
  const lk_semaphore_config *semaphore;
  const lk_single_config *single;
  const lk_multilock_part *parts;
  size_t count; /**< of `parts` */
  const lk_multilock_config *multilock;
  const lk_sync_lock *original; /**< of a clone */
} new_call;

static lk_client *client_of(const new_call *n)
{
  return n->call.client->client;
}

static int make_mutex(const new_call *n, lk_lock **out)
{
  return lk_lock_new(out, client_of(n), n->path, &n->config);
}

static int make_semaphore(const new_call *n, lk_lock **out)
{
  return lk_semaphore_new(out, client_of(n), n->path, &n->config, n->semaphore);
}

static int make_single(const new_call *n, lk_lock **out)
{
  return lk_single_new(out, client_of(n), n->path, &n->config, n->single);
}

static int make_multilock(const new_call *n, lk_lock **out)
{
  return lk_multilock_new(out, client_of(n), n->parts, n->count, &n->config,
                          n->multilock);
}

static void on_inner_event(lk_lock *inner, const lk_lock_event *event,
                           void *arg)
{
  (void)inner;
  lk__sync_lock_on_event(arg, event);
}

static void begin_new(lk_blocking_call *b)
{
  const new_call *n = LK_OWNER(b, new_call, call);
  int err = lk__sync_lock_refusal(b->client);

  if (err == 0)
    err = n->make(n, &n->lock->inner);
  lk__blocking_call_complete(b, err);
}

/* Make a lock as `n` says, whose `config` was copied. */
static int sync_lock_new(lk_sync_lock **out, lk_sync_client *c, new_call *n,
                         lk_sync_lock_event_cb on_event, void *arg)
{
  lk_sync_lock *l = lk__mem_new(&c->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  lk__sync_lock_init(l, c, on_event, arg);
  n->lock = l;
  n->config.on_event = on_inner_event;
  n->config.arg = l;
  int err = lk__sync_lock_make(&n->call, c, begin_new);

  if (err != 0)
    lk__mem_free(&c->mem, l);
  else
    *out = l;
  return err;
}

/* Check the arguments that all constructors have, and copy the options. */
static int new_call_init(new_call *n, lk_sync_lock **out, lk_sync_client *c,
                         const char *path, const lk_lock_config *config)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lk__sync_lock_config_copy(c, &n->config, config);

  n->path = path;
  return err == 0 && path == NULL ? LK_ERR_BAD_PATH : err;
}

int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                     const lk_lock_config *config,
                     lk_sync_lock_event_cb on_event, void *arg)
{
  new_call n = {.make = make_mutex};
  int err = new_call_init(&n, out, c, path, config);

  return err != 0 ? err : sync_lock_new(out, c, &n, on_event, arg);
}

int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                          const char *path, const lk_lock_config *config,
                          const lk_semaphore_config *options,
                          lk_sync_lock_event_cb on_event, void *arg)
{
  new_call n = {.make = make_semaphore, .semaphore = options};
  int err = new_call_init(&n, out, c, path, config);

  if (err == 0)
    err = sync_lock_new(out, c, &n, on_event, arg);
  if (err == 0)
    (*out)->is_semaphore = true;
  return err;
}

int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                       const lk_lock_config *config,
                       const lk_single_config *options,
                       lk_sync_lock_event_cb on_event, void *arg)
{
  new_call n = {.make = make_single, .single = options};
  int err = new_call_init(&n, out, c, path, config);

  return err != 0 ? err : sync_lock_new(out, c, &n, on_event, arg);
}

int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                          const lk_multilock_part *parts, size_t count,
                          const lk_lock_config *config,
                          const lk_multilock_config *options,
                          lk_sync_lock_event_cb on_event, void *arg)
{
  const char *no_path = "";
  new_call n = {.make = make_multilock,
                .parts = parts,
                .count = count,
                .multilock = options};
  int err = new_call_init(&n, out, c, no_path, config);

  return err != 0 ? err : sync_lock_new(out, c, &n, on_event, arg);
}

/* ---- the state ----------------------------------------------------------- */

static lk_lock_use use_of(const lk_sync_lock *l)
{
  return (lk_lock_use)atomic_load(&l->use);
}

/* Whether the lock was acquired and not released yet. */
static bool lock_is_acquired(const lk_sync_lock *l)
{
  return use_of(l) == LK_USE_HOLDING || use_of(l) == LK_USE_LOST;
}

/* Store the state for all threads, under the client's mutex. A thread that
   learns of a doubt by the descriptor or a callback sees it in `sure_until_ms`.
 */
static void lock_store(lk_sync_lock *l, int64_t sure_until_ms,
                       int64_t lease_deadline_ms)
{
  bool had_doubt = atomic_load(&l->sure_until_ms) == LK_NOT_HELD;
  bool doubt = sure_until_ms == LK_NOT_HELD;

  atomic_store_explicit(&l->sure_until_ms, sure_until_ms, memory_order_release);
  atomic_store_explicit(&l->lease_deadline_ms, lease_deadline_ms,
                        memory_order_release);
  if (lease_deadline_ms == LK_NOT_HELD)
    atomic_store(&l->token, 0);
  if (doubt == had_doubt || l->doubt_fd.read_fd < 0)
    return;
  if (doubt)
    lk__flag_fd_set(&l->doubt_fd);
  else
    lk__flag_fd_clear(&l->doubt_fd);
}

static bool holds_for_certain(const lk_sync_lock *l)
{
  int64_t sure_until_ms = atomic_load(&l->sure_until_ms);

  return sure_until_ms != LK_NOT_HELD &&
         lk_client_clock(l->client->client) < sure_until_ms;
}

enum { STILL_UNSURE = 1 }; /* errors are negative */

/* The result of lk_sync_lock_wait_certain(), or STILL_UNSURE. The lease
   deadline may have passed although the lock is not unsure yet. Then the wait
   goes on, until a later deadline is stored or the lock is lost. */
static int lock_certainty(const lk_sync_lock *l)
{
  if (l->client->closing || l->inner == NULL)
    return LK_ERR_CLOSED;
  if (!lock_is_acquired(l))
    return LK_ERR_NOT_HELD;
  if (use_of(l) == LK_USE_LOST)
    return LK_ERR_LOST;
  return holds_for_certain(l) ? 0 : STILL_UNSURE;
}

void lk__sync_lock_check_waits(lk_sync_lock *l)
{
  int err = lock_certainty(l);

  while (err != STILL_UNSURE && !lk__list_empty(&l->waiting))
    lk__wait_end(LK_OWNER(l->waiting.next, lk_wait, link), err);
}

/* Store the state of `inner`, under the client's mutex. */
static void lock_store_inner(lk_sync_lock *l)
{
  lk_lock_state state = lk_lock_get_state(l->inner);
  int64_t lease_deadline_ms = lk_lock_deadline(l->inner);
  bool sure = state == LK_LOCK_HELD;
  bool lost = !sure && state != LK_LOCK_UNSURE;

  lock_store(l, sure ? lease_deadline_ms : LK_NOT_HELD, lease_deadline_ms);
  atomic_store(&l->use, lost ? LK_USE_LOST : LK_USE_HOLDING);
}

/* The state of `inner` has changed. It is not stored if the lock was released
   meanwhile. */
static void lock_publish(lk_sync_lock *l)
{
  pthread_mutex_lock(&l->client->mutex);
  if (use_of(l) == LK_USE_HOLDING)
    lock_store_inner(l);
  pthread_mutex_unlock(&l->client->mutex);
  lk__sync_lock_check_waits(l);
}

void lk__sync_locks_publish(lk_sync_client *c)
{
  for (lk_link *l = c->locks.next; l != &c->locks; l = l->next)
    lock_publish(LK_OWNER(l, lk_sync_lock, link));
}

void lk__sync_lock_on_event(lk_sync_lock *l, const lk_lock_event *event)
{
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_RENEWED:
  case LK_LOCK_EVENT_LOST: lock_publish(l); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
  if (l->on_event != NULL)
    l->on_event(l, event, l->arg);
}

/* ---- the use of the handle ----------------------------------------------- */

int lk__sync_lock_enter(lk_sync_lock *l, int *cancel_state)
{
  return lk__sync_enter_object(lk__sync_lock_client(l),
                               l == NULL ? NULL : &l->calls_inside,
                               cancel_state);
}

void lk__sync_lock_leave(lk_sync_lock *l, int cancel_state)
{
  lk__sync_leave_object(l->client, &l->calls_inside, cancel_state);
}

void lk__sync_lock_end_use(lk_sync_lock *l)
{
  pthread_mutex_lock(&l->client->mutex);
  atomic_store(&l->use, LK_USE_NONE);
  pthread_mutex_unlock(&l->client->mutex);
}

bool lk__sync_lock_begin_candidate(lk_sync_lock *l)
{
  pthread_mutex_lock(&l->client->mutex);
  bool is_idle =
      use_of(l) == LK_USE_NONE &&
      (l->other_side == NULL || use_of(l->other_side) == LK_USE_NONE);

  if (is_idle)
    atomic_store(&l->use, LK_USE_CANDIDATE);
  pthread_mutex_unlock(&l->client->mutex);
  return is_idle;
}

bool lk__sync_lock_is_acquired(lk_sync_lock *l, uint64_t *thread)
{
  pthread_mutex_lock(&l->client->mutex);
  bool is_acquired = lock_is_acquired(l);

  *thread = l->thread;
  pthread_mutex_unlock(&l->client->mutex);
  return is_acquired;
}

/* ---- clones -------------------------------------------------------------- */

static int make_clone(const new_call *n, lk_lock **out)
{
  if (n->original->inner == NULL)
    return LK_ERR_CLOSED;
  return lk_lock_clone(out, n->original->inner, n->config.on_event,
                       n->config.arg);
}

int lk_sync_lock_clone(lk_sync_lock **out, lk_sync_lock *l, void *arg)
{
  const lk_lock_config *no_config = NULL;
  const char *no_path = "";
  new_call n = {.make = make_clone, .original = l};
  int cancel_state;
  int err = new_call_init(&n, out, lk__sync_lock_client(l), no_path, no_config);

  if (err != 0)
    return err;
  err = lk__sync_lock_enter(l, &cancel_state);
  bool on_thread_of_handle = err == LK_ERR_STATE; /* so no free runs */

  if (err == 0 || on_thread_of_handle) {
    bool entered = err == 0;

    err = sync_lock_new(out, l->client, &n, l->on_event, arg);
    if (err == 0)
      (*out)->is_semaphore = l->is_semaphore;
    if (entered)
      lk__sync_lock_leave(l, cancel_state);
  }
  return err;
}

/* ---- acquire ------------------------------------------------------------- */

enum { COUNTED = 1 }; /* errors are negative */

/* Whether the thread acquires or has acquired the lock. */
static bool lock_is_in_use_by(const lk_sync_lock *l, uint64_t thread)
{
  return (use_of(l) == LK_USE_ACQUIRING || lock_is_acquired(l)) &&
         l->thread == thread;
}

/* Returns 0: the thread is to acquire; COUNTED: the thread held already; or why
   it may not acquire. Under the client's mutex. A thread that shares the handle
   of another one by mistake is refused: both would hold together. */
static int lock_begin_use(lk_sync_lock *l, uint64_t thread)
{
  const lk_sync_lock *other = l->other_side;

  if (other != NULL && use_of(other) != LK_USE_NONE &&
      !lock_is_in_use_by(other, thread))
    return LK_ERR_STATE;
  if (use_of(l) == LK_USE_NONE) {
    atomic_store(&l->use, LK_USE_ACQUIRING);
    l->thread = thread;
    return 0;
  }
  if (!lock_is_acquired(l) || l->thread != thread)
    return LK_ERR_STATE;
  if (use_of(l) == LK_USE_LOST)
    return LK_ERR_LOST;
  if (l->is_semaphore) /* its permits cannot be acquired again */
    return LK_ERR_DEADLOCK;
  atomic_fetch_add(&l->count, 1);
  return COUNTED;
}

/** A call that waits until the lock is acquired or released. */
typedef struct lock_call {
  lk_blocking_call call;
  lk_sync_lock *lock;
  lk_acquire_way way; /**< of an acquire */
  int interrupt_err;  /**< why the call was interrupted, or 0 */
} lock_call;

static void lock_call_complete(lock_call *w, int err)
{
  lk__blocking_call_complete(&w->call,
                             w->interrupt_err != 0 ? w->interrupt_err : err);
}

static void on_acquired(lk_lock *inner, int err, void *arg)
{
  lock_call *w = arg;
  lk_sync_lock *l = w->lock;

  if (err == 0) {
    lk__list_add(&l->client->locks, &l->link);
    pthread_mutex_lock(&l->client->mutex);
    atomic_store(&l->token, lk_lock_token(inner));
    atomic_store(&l->count, 1);
    lock_store_inner(l);
    pthread_mutex_unlock(&l->client->mutex);
  }
  lock_call_complete(w, err);
}

/* lk_lock_cancel() calls on_acquired(), which completes the call. */
static void interrupt_acquire(lk_blocking_call *b, int err)
{
  lock_call *w = LK_OWNER(b, lock_call, call);

  w->interrupt_err = err;
  lk_lock_cancel(w->lock->inner);
}

/* The limits of the call are those of `b`. */
static int acquire_inner(lock_call *w)
{
  lk_lock *inner = w->lock->inner;

  if (inner == NULL)
    return LK_ERR_CLOSED;
  switch (w->way) {
  case LK_ACQUIRE_WAIT: break;
  case LK_ACQUIRE_TRY:
    return lk_lock_try_until(inner, LK_NO_LIMIT, on_acquired, w);
  case LK_ACQUIRE_TRY_CONNECTED: return lk_lock_try(inner, on_acquired, w);
  }
  return lk_lock_acquire(inner, LK_NO_LIMIT, on_acquired, w);
}

static void begin_acquire(lk_blocking_call *b)
{
  lock_call *w = LK_OWNER(b, lock_call, call);
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = acquire_inner(w);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__blocking_call_allow_interrupt(b, interrupt_acquire);
  lk__blocking_call_start_timer(b);
}

static int lock_acquire(lk_sync_lock *l, uint64_t thread,
                        const lk_sync_call *call, lk_acquire_way way)
{
  lock_call w = {.lock = l, .way = way};
  int err = lk__sync_call_refusal(l->client, call);

  if (err != 0)
    return err;
  pthread_mutex_lock(&l->client->mutex);
  err = lock_begin_use(l, thread);
  pthread_mutex_unlock(&l->client->mutex);
  if (err != 0)
    return err == COUNTED ? 0 : err;
  err = lk__blocking_call_init_from(&w.call, l->client, call);
  if (err == 0) {
    err = lk__blocking_call_wait(&w.call, begin_acquire);
    lk__blocking_call_destroy(&w.call);
  }
  if (err != 0)
    lk__sync_lock_end_use(l);
  return err;
}

int lk__sync_lock_acquire(lk_sync_lock *l, uint64_t thread,
                          const lk_sync_call *call, lk_acquire_way way)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = lock_acquire(l, thread, call, way);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call)
{
  return lk__sync_lock_acquire(l, lk__sync_thread(), call, LK_ACQUIRE_WAIT);
}

int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call)
{
  bool waits = call != NULL || (l != NULL && l->client->has_default_call);

  return lk__sync_lock_acquire(l, lk__sync_thread(), call,
                               waits ? LK_ACQUIRE_TRY
                                     : LK_ACQUIRE_TRY_CONNECTED);
}

/* ---- release ------------------------------------------------------------- */

/* Count down, under the client's mutex. Returns 0, LK_ERR_NOT_HELD or
   LK_ERR_LOST. `*last`: from now on the handle holds nothing, its use is
   LK_USE_RELEASING, and the caller has `inner` released. */
static int lock_count_down(lk_sync_lock *l, bool *last)
{
  int err = use_of(l) == LK_USE_LOST ? LK_ERR_LOST : 0;

  *last = false;
  if (!lock_is_acquired(l))
    return LK_ERR_NOT_HELD;
  if (err == 0 && atomic_fetch_sub(&l->count, 1) > 1)
    return 0;
  *last = true;
  atomic_store(&l->count, 0);
  atomic_store(&l->use, LK_USE_RELEASING);
  lock_store(l, LK_NOT_HELD, LK_NOT_HELD);
  return err;
}

/* Have the thread of the handle release `inner`, under the client's mutex. The
   use ends in the same section as the task is added, so that the next acquire
   begins behind it. If the client is being freed, the lock is lost anyway. */
static void lock_post_release(lk_sync_lock *l)
{
  atomic_store(&l->use, LK_USE_NONE);
  (void)lk__task_add(l->client, &l->release);
}

static void begin_release_task(lk_task *t)
{
  lk_sync_lock *l = LK_OWNER(t, lk_sync_lock, release);

  lk__list_remove(&l->link);
  lk_lock_release(l->inner, NULL, NULL);
  lk__sync_lock_check_waits(l);
}

/* A callback may release, too, so the thread of the handle enters as well. */
int lk_sync_lock_release(lk_sync_lock *l)
{
  bool last;

  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  lk_sync_client *c = l->client;

  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  /* lk__flag_fd_set() and lk__driver_wake() write: a thread that was cancelled
     there would end with the mutex. */
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&c->mutex);
  c->calls_inside++;
  l->calls_inside++;
  int err = lock_count_down(l, &last);

  if (last)
    lock_post_release(l);
  pthread_mutex_unlock(&c->mutex);
  if (last)
    lk__driver_wake(&c->driver);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

static void on_released(lk_lock *inner, int err, void *arg)
{
  (void)inner;
  lock_call_complete(arg, err);
}

/* The node is still deleted, but the call does not wait for that.
   lk_lock_reset() calls on_released(), which completes the call. */
static void interrupt_release(lk_blocking_call *b, int err)
{
  lock_call *w = LK_OWNER(b, lock_call, call);

  w->interrupt_err = err;
  lk_lock_reset(w->lock->inner);
}

/* A call that may not wait, because its deadline has passed or its cancel is
   set, is interrupted only after its release has begun. */
static void begin_release(lk_blocking_call *b)
{
  lock_call *w = LK_OWNER(b, lock_call, call);
  lk_sync_lock *l = w->lock;
  int refusal = lk__blocking_call_refusal(b);
  int err = l->inner == NULL
                ? LK_ERR_CLOSED
                : lk_lock_release_until(l->inner, LK_NO_LIMIT, on_released, w);

  lk__list_remove(&l->link);
  lk__sync_lock_check_waits(l);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__blocking_call_allow_interrupt(b, interrupt_release);
  lk__blocking_call_start_timer(b);
  if (refusal != 0)
    b->interrupt(b, refusal);
}

static int lock_release_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  lock_call w = {.lock = l};
  bool last;
  int err = lk__blocking_call_init_from(&w.call, l->client, call);

  if (err != 0)
    return err;
  pthread_mutex_lock(&l->client->mutex);
  err = lock_count_down(l, &last);
  pthread_mutex_unlock(&l->client->mutex);
  if (last) { /* a lost lock has no node to delete, but must be released, too */
    int release_err = lk__blocking_call_wait(&w.call, begin_release);

    err = err != 0 ? err : release_err;
    lk__sync_lock_end_use(l);
  } else if (err == 0) {
    err = lk__sync_call_refusal(l->client, call);
  }
  lk__blocking_call_destroy(&w.call);
  return err;
}

int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = lock_release_wait(l, call);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

/* ---- waiting while the lock is unsure ------------------------------------ */

typedef struct certain_call {
  lk_wait wait; /* in lk_sync_lock.waiting */
  lk_sync_lock *lock;
} certain_call;

static void begin_wait(lk_blocking_call *b)
{
  certain_call *w = LK_OWNER(b, certain_call, wait.call);
  int err = lk__blocking_call_refusal(b);

  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__wait_add(&w->wait, &w->lock->waiting);
  lk__sync_lock_check_waits(w->lock);
}

int lk_sync_lock_wait_certain(lk_sync_lock *l, const lk_sync_call *call)
{
  certain_call w = {.lock = l};

  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__wait_do(&w.wait, l->client, &l->calls_inside, call, begin_wait);
}

/* ---- asking a quorum ----------------------------------------------------- */

/* An interrupt may have completed the call already. */
static void complete_verify(lk_sync_lock *l, int err)
{
  lk_blocking_call *b = l->verifying;

  l->verifying = NULL;
  if (b != NULL)
    lk__blocking_call_complete(b, err);
}

static void on_verified(lk_lock *inner, int err, void *arg)
{
  (void)inner;
  complete_verify(arg, err);
}

static void interrupt_verify(lk_blocking_call *b, int err)
{
  complete_verify(LK_OWNER(b, lock_call, call)->lock, err);
}

static void begin_verify(lk_blocking_call *b)
{
  lk_sync_lock *l = LK_OWNER(b, lock_call, call)->lock;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && !lock_is_acquired(l)) /* a candidate may hold */
    err = l->inner == NULL ? LK_ERR_CLOSED : LK_ERR_NOT_HELD;
  if (err == 0)
    err = lk_lock_verify(l->inner, on_verified, l);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  l->verifying = b;
  lk__blocking_call_allow_interrupt(b, interrupt_verify);
  lk__blocking_call_start_timer(b);
}

int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call)
{
  lock_call w = {.lock = l};
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = lk__blocking_call_init_from(&w.call, l->client, call);
  if (err == 0) {
    err = lk__blocking_call_wait(&w.call, begin_verify);
    lk__blocking_call_destroy(&w.call);
  }
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

/* The transaction is for the present grant: the lock may be released and
   acquired again before it is sent. */
static int lock_guarded_multi(lk_sync_lock *l, lk_sync_result **out,
                              const lk_op *ops, size_t count,
                              const lk_sync_call *call)
{
  pthread_mutex_lock(&l->client->mutex);
  const lk_sync_guard guard = {.lock = &l->inner,
                               .token = atomic_load(&l->token)};
  bool is_lost = use_of(l) == LK_USE_LOST;

  pthread_mutex_unlock(&l->client->mutex);
  if (guard.token == 0)
    return is_lost ? LK_ERR_LOST : LK_ERR_NOT_HELD;
  return lk__sync_multi_do(l->client, out, &guard, ops, count, call);
}

int lk_sync_lock_guarded_multi(lk_sync_lock *l, lk_sync_result **out,
                               const lk_op *ops, size_t count,
                               const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (out != NULL)
    *out = NULL;
  if (err != 0)
    return err;
  err = lock_guarded_multi(l, out, ops, count, call);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

/* ---- queries ------------------------------------------------------------- */

/* Whether no lock is held here: there is none, or this is a child process. */
static bool is_unusable(const lk_sync_lock *l)
{
  return l == NULL || lk__driver_in_child(&l->client->driver);
}

/* The clock is read last: a pause of the thread before that can only make the
   result false. A doubt that was stored before this call is seen, since one
   variable holds both deadline and doubt. */
bool lk_sync_lock_ok(const lk_sync_lock *l)
{
  if (is_unusable(l))
    return false;
  int64_t sure_until_ms =
      atomic_load_explicit(&l->sure_until_ms, memory_order_acquire);

  return sure_until_ms != LK_NOT_HELD &&
         lk__driver_clock(&l->client->driver) < sure_until_ms;
}

int64_t lk_sync_lock_deadline(const lk_sync_lock *l)
{
  return is_unusable(l) ? LK_NOT_HELD : atomic_load(&l->lease_deadline_ms);
}

uint64_t lk_sync_lock_token(const lk_sync_lock *l)
{
  return is_unusable(l) ? 0 : atomic_load(&l->token);
}

lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l)
{
  if (is_unusable(l))
    return LK_LOCK_IDLE;
  switch (use_of(l)) {
  case LK_USE_ACQUIRING: return LK_LOCK_ACQUIRING;
  case LK_USE_LOST: return LK_LOCK_LOST;
  case LK_USE_HOLDING:
    return atomic_load(&l->sure_until_ms) == LK_NOT_HELD ? LK_LOCK_UNSURE
                                                         : LK_LOCK_HELD;
  case LK_USE_NONE:
  case LK_USE_RELEASING:
  case LK_USE_CANDIDATE: break;
  }
  return LK_LOCK_IDLE;
}

size_t lk_sync_lock_count(const lk_sync_lock *l)
{
  return is_unusable(l) ? 0 : atomic_load(&l->count);
}

int lk_sync_lock_fd(lk_sync_lock *l)
{
  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  /* lk__flag_fd_set() writes: see lk_sync_lock_release(). */
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&l->client->mutex);
  if (l->doubt_fd.read_fd < 0 && lk__flag_fd_open(&l->doubt_fd) == 0 &&
      atomic_load(&l->sure_until_ms) == LK_NOT_HELD)
    lk__flag_fd_set(&l->doubt_fd);
  int fd = l->doubt_fd.read_fd;

  pthread_mutex_unlock(&l->client->mutex);
  lk__sync_restore_cancel(cancel_state);
  return fd >= 0 ? fd : LK_ERR_SYSTEM;
}

/** Reads the token of the part with `path` on the thread of the handle. */
typedef struct token_call {
  lk_blocking_call call;
  const lk_sync_lock *lock;
  const char *path;
  uint64_t token; /**< the result */
} token_call;

static void begin_token(lk_blocking_call *b)
{
  token_call *q = LK_OWNER(b, token_call, call);

  if (q->lock->inner != NULL)
    q->token = lk_multilock_token(q->lock->inner, q->path);
  lk__blocking_call_complete(b, 0);
}

uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path)
{
  token_call q = {.lock = l, .path = path};
  int cancel_state;

  if (path == NULL || lk__sync_lock_enter(l, &cancel_state) != 0)
    return 0;
  if (atomic_load(&l->token) != 0)
    (void)lk__blocking_call_do(&q.call, l->client, begin_token);
  lk__sync_lock_leave(l, cancel_state);
  return q.token; /* 0 unless begin_token() ran */
}

/* `inner` and its path do not change until the lock is freed. */
const char *lk_sync_lock_path(const lk_sync_lock *l)
{
  return l == NULL ? NULL : lk_lock_path(l->inner);
}

/* ---- end ----------------------------------------------------------------- */

lk_lock *lk__sync_lock_remove(lk_sync_lock *l)
{
  lk_lock *inner = l->inner;

  l->inner = NULL;
  lk__list_remove(&l->link);
  pthread_mutex_lock(&l->client->mutex);
  lk__list_remove(&l->release.link); /* freeing `inner` releases it */
  if (lock_is_acquired(l))
    atomic_store(&l->use, LK_USE_NONE);
  lock_store(l, LK_NOT_HELD, LK_NOT_HELD);
  pthread_mutex_unlock(&l->client->mutex);
  return inner;
}

void lk__sync_lock_deinit(lk_sync_lock *l)
{
  int cancel_state = lk__sync_disable_cancel();

  lk__sync_await_calls(l->client, &l->calls_inside);
  lk__flag_fd_close(&l->doubt_fd);
  lk__sync_restore_cancel(cancel_state);
}

static void begin_free(lk_blocking_call *b)
{
  lk_sync_lock *l = LK_OWNER(b, lock_call, call)->lock;

  lk_lock_free(lk__sync_lock_remove(l));
  lk__sync_lock_check_waits(l);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_lock_free(lk_sync_lock *l)
{
  lock_call w = {.lock = l};

  if (l == NULL)
    return 0;
  int err = lk__blocking_call_do(&w.call, l->client, begin_free);

  if (err != 0)
    return lk__sync_free_result(l->client, err, "lk_sync_lock_free");
  lk__sync_lock_deinit(l);
  lk__mem_free(&l->client->mem, l);
  return 0;
}
