/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call.h"

#include <stdio.h>

#include "base/timeout.h"

/* ---- entering and leaving the handle ------------------------------------- */

int lk__sync_refusal(const lk_sync_client *c)
{
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  return pthread_equal(pthread_self(), c->thread) ? LK_ERR_STATE : 0;
}

/* The thread of the handle uses memory on the caller's stack. So cancellation
   of the calling thread is disabled until its call is completed. */
int lk__sync_enter_object(lk_sync_client *c, size_t *object_calls,
                          int *cancel_state)
{
  int err = lk__sync_refusal(c);

  if (err != 0)
    return err;
  *cancel_state = lk__sync_disable_cancel();
  pthread_mutex_lock(&c->mutex);
  bool open = !c->freeing;

  if (open) {
    c->calls_inside++;
    if (object_calls != NULL)
      ++*object_calls;
  }
  pthread_mutex_unlock(&c->mutex);
  if (open)
    return 0;
  lk__sync_restore_cancel(*cancel_state);
  return LK_ERR_CLOSED;
}

int lk__sync_enter(lk_sync_client *c, int *cancel_state)
{
  size_t *const no_object = NULL;

  return lk__sync_enter_object(c, no_object, cancel_state);
}

void lk__sync_leave_object(lk_sync_client *c, size_t *object_calls,
                           int cancel_state)
{
  pthread_mutex_lock(&c->mutex);
  c->calls_inside--;
  if (object_calls != NULL)
    --*object_calls;
  if (c->calls_inside == 0 || (object_calls != NULL && *object_calls == 0))
    pthread_cond_broadcast(&c->no_call_inside);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancel_state);
}

void lk__sync_leave(lk_sync_client *c, int cancel_state)
{
  size_t *const no_object = NULL;

  lk__sync_leave_object(c, no_object, cancel_state);
}

void lk__sync_await_calls(lk_sync_client *c, const size_t *object_calls)
{
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&c->mutex);
  while (*object_calls > 0)
    pthread_cond_wait(&c->no_call_inside, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancel_state);
}

int lk__sync_free_result(const lk_sync_client *c, int err, const char *function)
{
  char text[80];

  if (err == LK_ERR_STATE) {
    snprintf(text, sizeof text, "%s() in a callback frees nothing", function);
    lk_client_log(c->client, LK_LOG_WARNING, err, text);
  }
  return err;
}

/* The only variable of the library that changes, apart from objects. */
static _Atomic(uint64_t) numbered_threads;

uint64_t lk__sync_thread(void)
{
  static _Thread_local uint64_t number; /* 0: none yet */

  if (number == 0)
    number = atomic_fetch_add(&numbered_threads, 1) + 1;
  return number;
}

/* ---- tasks --------------------------------------------------------------- */

bool lk__task_add(lk_sync_client *c, lk_task *t)
{
  if (!c->freeing)
    lk__list_add(&c->tasks, &t->link);
  return !c->freeing;
}

bool lk__task_post(lk_sync_client *c, lk_task *t)
{
  pthread_mutex_lock(&c->mutex);
  bool was_empty = lk__list_empty(&c->tasks);
  bool accepted = lk__task_add(c, t);

  pthread_mutex_unlock(&c->mutex);
  /* For the tasks before this one the thread has been woken already. */
  if (accepted && was_empty)
    lk__driver_wake(&c->driver);
  return accepted;
}

bool lk__tasks_begin(lk_sync_client *c)
{
  lk_link todo;

  lk__list_init(&todo);
  pthread_mutex_lock(&c->mutex);
  lk__list_move(&todo, &c->tasks);
  bool freeing = c->freeing;

  pthread_mutex_unlock(&c->mutex);
  while (!lk__list_empty(&todo)) {
    lk_task *t = LK_OWNER(todo.next, lk_task, link);

    lk__list_remove(&t->link);
    t->begin(t);
  }
  return freeing;
}

/* ---- cancelling ---------------------------------------------------------- */

int lk_sync_cancel_new(lk_sync_cancel **out, lk_sync_client *c)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  lk_sync_cancel *x = lk__mem_new(&c->mem, sizeof *x);

  if (x == NULL)
    return LK_ERR_NO_MEMORY;
  x->client = c;
  *out = x;
  return 0;
}

/* `set` is stored before `cancel_was_set`. The thread of the handle examines
   all calls after it has seen `cancel_was_set`, and so it sees `set`. A call
   that begins later examines its own cancel. */
void lk_sync_cancel_set(lk_sync_cancel *x)
{
  if (x == NULL)
    return;
  atomic_store(&x->set, true);
  atomic_store(&x->client->cancel_was_set, true);
  lk__driver_wake(&x->client->driver);
}

void lk_sync_cancel_clear(lk_sync_cancel *x)
{
  if (x != NULL)
    atomic_store(&x->set, false);
}

static bool is_cancelled(const lk_sync_cancel *x)
{
  return x != NULL && atomic_load(&x->set);
}

void lk_sync_cancel_free(lk_sync_cancel *x)
{
  if (x != NULL && !lk__driver_in_child(&x->client->driver))
    lk__mem_free(&x->client->mem, x);
}

/* ---- a blocking call: its caller ----------------------------------------- */

static void on_call_deadline(lk_client *client, void *arg)
{
  lk_blocking_call *b = arg;

  (void)client;
  b->interrupt(b, LK_ERR_DEADLINE);
}

int lk__blocking_call_init(lk_blocking_call *b, lk_sync_client *c,
                           const lk_sync_call *call)
{
  if (pthread_cond_init(&b->completed, NULL) != 0)
    return LK_ERR_NO_MEMORY;
  b->client = c;
  b->cancel = call == NULL ? NULL : call->cancel;
  b->deadline_ms = call == NULL
                       ? INT64_MAX
                       : lk__timeout_end(lk__driver_clock(&c->driver),
                                         call->timeout_ms, call->deadline_ms);
  b->interrupt = NULL;
  b->timer = (lk_timer){.fire = on_call_deadline, .arg = b};
  lk__list_init(&b->link);
  b->is_completed = false;
  return 0;
}

int lk__blocking_call_init_from(lk_blocking_call *b, lk_sync_client *c,
                                const lk_sync_call *call)
{
  lk_sync_call copy;
  int err = lk__sync_copy_call(c, &copy, call);

  if (err != 0)
    return err;
  return copy.on_event != NULL ? LK_ERR_BAD_ARGUMENT
                               : lk__blocking_call_init(b, c, &copy);
}

static void begin_blocking_call(lk_task *t)
{
  lk_blocking_call *b = LK_OWNER(t, lk_blocking_call, task);

  b->begin(b);
}

static int blocking_call_await(lk_blocking_call *b)
{
  pthread_mutex_t *mutex = &b->client->mutex;

  pthread_mutex_lock(mutex);
  while (!b->is_completed)
    pthread_cond_wait(&b->completed, mutex);
  pthread_mutex_unlock(mutex);
  return b->err;
}

int lk__blocking_call_wait(lk_blocking_call *b,
                           void (*begin)(lk_blocking_call *b))
{
  b->task.begin = begin_blocking_call;
  b->begin = begin;
  return lk__task_post(b->client, &b->task) ? blocking_call_await(b)
                                            : LK_ERR_CLOSED;
}

void lk__blocking_call_destroy(lk_blocking_call *b)
{
  pthread_cond_destroy(&b->completed);
}

int lk__blocking_call_do(lk_blocking_call *b, lk_sync_client *c,
                         void (*begin)(lk_blocking_call *b))
{
  const lk_sync_call *no_options = NULL;
  int cancel_state;
  int err = lk__sync_enter(c, &cancel_state);

  if (err != 0)
    return err;
  err = lk__blocking_call_init(b, c, no_options);
  if (err == 0) {
    err = lk__blocking_call_wait(b, begin);
    lk__blocking_call_destroy(b);
  }
  lk__sync_leave(c, cancel_state);
  return err;
}

/* ---- a blocking call: the thread of the handle --------------------------- */

int lk__blocking_call_refusal(const lk_blocking_call *b)
{
  if (b->client->closing)
    return LK_ERR_CLOSED;
  if (is_cancelled(b->cancel))
    return LK_ERR_CANCELLED;
  return b->deadline_ms <= lk__blocking_call_clock(b) ? LK_ERR_DEADLINE : 0;
}

void lk__blocking_call_allow_interrupt(lk_blocking_call *b,
                                       void (*interrupt)(lk_blocking_call *b,
                                                         int err))
{
  b->interrupt = interrupt;
  lk__safe_list_add(&b->client->interruptible, &b->link);
}

void lk__blocking_call_start_timer(lk_blocking_call *b)
{
  if (b->deadline_ms != INT64_MAX)
    lk_timer_start(b->client->client, &b->timer, b->deadline_ms);
}

void lk__blocking_calls_interrupt_cancelled(lk_sync_client *c)
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->interruptible);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_blocking_call *b = LK_OWNER(l, lk_blocking_call, link);

    if (is_cancelled(b->cancel))
      b->interrupt(b, LK_ERR_CANCELLED);
  }
}

void lk__blocking_call_complete(lk_blocking_call *b, int err)
{
  pthread_mutex_t *mutex = &b->client->mutex;

  b->interrupt = NULL;
  lk__safe_list_remove(&b->client->interruptible, &b->link);
  lk_timer_stop(b->client->client, &b->timer);
  pthread_mutex_lock(mutex);
  b->err = err;
  b->is_completed = true;
  pthread_cond_signal(&b->completed);
  pthread_mutex_unlock(mutex);
}

/* ---- the caller's options ------------------------------------------------ */

/** Writes a line of the log on the thread of the handle. */
typedef struct log_call {
  lk_blocking_call call;
  const char *text;
} log_call;

static void begin_log(lk_blocking_call *b)
{
  lk_client_log(b->client->client, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
                LK_OWNER(b, log_call, call)->text);
  lk__blocking_call_complete(b, 0);
}

int lk__sync_copy_options(lk_sync_client *c, const lk_sized_struct *type,
                          void *out, const void *from)
{
  lk_size_fault fault = lk__sized_struct_copy(type, out, from);
  char text[LK_SIZE_TEXT_ROOM];

  if (fault == LK_SIZE_OK)
    return 0;
  log_call log = {.text = lk__sized_struct_text(type, fault, text)};
  bool on_thread_of_handle = lk__sync_refusal(c) == LK_ERR_STATE;

  if (on_thread_of_handle)
    lk_client_log(c->client, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, text);
  else
    (void)lk__blocking_call_do(&log.call, c, begin_log);
  return LK_ERR_BAD_ARGUMENT;
}

int lk__sync_copy_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_sync_call);

  if (call != NULL || c == NULL)
    return lk__sync_copy_options(c, &sized, out, call);
  *out = c->default_call;
  return 0;
}

int lk__sync_call_refusal(lk_sync_client *c, const lk_sync_call *call)
{
  lk_sync_call copy;
  int err = lk__sync_copy_call(c, &copy, call);

  if (err != 0)
    return err;
  if (copy.on_event != NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (is_cancelled(copy.cancel))
    return LK_ERR_CANCELLED;
  int64_t now = lk__driver_clock(&c->driver);

  return lk__timeout_end(now, copy.timeout_ms, copy.deadline_ms) <= now
             ? LK_ERR_DEADLINE
             : 0;
}

/* ---- waiting for an event ------------------------------------------------ */

static inline lk_wait *wait_of(lk_blocking_call *b)
{
  return LK_OWNER(b, lk_wait, call);
}

static int wait_inside(lk_wait *w, lk_sync_client *c, const lk_sync_call *call,
                       void (*begin)(lk_blocking_call *b))
{
  int err = lk__blocking_call_init_from(&w->call, c, call);

  if (err != 0)
    return err;
  lk__list_init(&w->link);
  err = lk__blocking_call_wait(&w->call, begin);
  lk__blocking_call_destroy(&w->call);
  return err;
}

int lk__wait_do(lk_wait *w, lk_sync_client *c, size_t *object_calls,
                const lk_sync_call *call, void (*begin)(lk_blocking_call *b))
{
  int cancel_state;
  int err = lk__sync_enter_object(c, object_calls, &cancel_state);

  if (err != 0)
    return err;
  err = wait_inside(w, c, call, begin);
  lk__sync_leave_object(c, object_calls, cancel_state);
  return err;
}

static void interrupt_wait(lk_blocking_call *b, int err)
{
  lk__wait_end(wait_of(b), err);
}

void lk__wait_add(lk_wait *w, lk_link *list)
{
  lk__list_add(list, &w->link);
  lk__blocking_call_allow_interrupt(&w->call, interrupt_wait);
  lk__blocking_call_start_timer(&w->call);
}

void lk__wait_end(lk_wait *w, int err)
{
  lk__list_remove(&w->link);
  lk__blocking_call_complete(&w->call, err);
}
