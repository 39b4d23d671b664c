/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/client.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sync/blocking_call.h"
#include "sync/holder.h"

/* ---- what every call asks ------------------------------------------------ */

int lk__sync_refusal(const lk_sync_client *c)
{
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  return pthread_equal(pthread_self(), c->thread) ? LK_ERR_STATE : 0;
}

/* The handle's thread has its hands in the caller's memory: a thread that was
   cancelled goes on until it has its result. */
int lk__sync_enter_object(lk_sync_client *c, size_t *inside, int *cancelling)
{
  int err = lk__sync_refusal(c);

  if (err != 0)
    return err;
  *cancelling = lk__sync_hold_cancel();
  pthread_mutex_lock(&c->mutex);
  bool open = !c->freed;

  c->inside += open;
  if (open && inside != NULL)
    ++*inside;
  pthread_mutex_unlock(&c->mutex);
  if (open)
    return 0;
  lk__sync_restore_cancel(*cancelling);
  return LK_ERR_CLOSED;
}

int lk__sync_enter(lk_sync_client *c, int *cancelling)
{
  return lk__sync_enter_object(c, NULL, cancelling);
}

void lk__sync_leave_object(lk_sync_client *c, size_t *inside, int cancelling)
{
  pthread_mutex_lock(&c->mutex);
  bool empty = --c->inside == 0;

  if (inside != NULL)
    empty = --*inside == 0 || empty;
  if (empty)
    pthread_cond_broadcast(&c->left);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancelling);
}

void lk__sync_leave(lk_sync_client *c, int cancelling)
{
  lk__sync_leave_object(c, NULL, cancelling);
}

void lk__sync_await_calls(lk_sync_client *c, const size_t *inside)
{
  int cancelling = lk__sync_hold_cancel();

  pthread_mutex_lock(&c->mutex);
  while (*inside > 0)
    pthread_cond_wait(&c->left, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
  lk__sync_restore_cancel(cancelling);
}

bool lk__sync_post(lk_sync_client *c, lk_task *t)
{
  pthread_mutex_lock(&c->mutex);
  bool taken = !c->freed;
  bool first = lk__list_empty(&c->tasks);

  if (taken)
    lk__list_add(&c->tasks, &t->link);
  pthread_mutex_unlock(&c->mutex);
  if (taken && first)
    lk__driver_wake(&c->driver);
  return taken;
}

/* ---- life ---------------------------------------------------------------- */

/* No signal handler of the program's shall run on a thread it does not know.
   The mutex is held until all is in place. */
static bool start_thread(lk_sync_client *c)
{
  sigset_t all, before;

  sigfillset(&all);
  pthread_mutex_lock(&c->mutex);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&c->thread, NULL, lk__sync_thread_main, c);

  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_mutex_unlock(&c->mutex);
  return failed == 0;
}

/* Of the client that is to be made; those of one that is refused are 0. */
static lk_client_config client_options(const lk_sync_config *config)
{
  static const lk_sized what = LK_SIZED(lk_client_config);
  lk_client_config own;

  if (lk__sized_copy(&what, &own, config->client) != NULL)
    own = (lk_client_config){0};
  return own;
}

/* Always LK_ERR_SYSTEM. */
static int __attribute__((format(printf, 2, 3)))
log_system_error(const lk_sync_config *config, const char *format, ...)
{
  lk_client_config how = client_options(config);
  char text[160];
  va_list args;

  if (how.log == NULL)
    return LK_ERR_SYSTEM;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  how.log(how.log_arg, LK_LOG_ERROR, LK_ERR_SYSTEM, text);
  return LK_ERR_SYSTEM;
}

/* What a handle needs: the loop, its timer, its wake-ups, a connection. */
enum { DESCRIPTORS = 4 };

/* How many of them are free. */
static int free_descriptors(void)
{
  int fds[DESCRIPTORS], count = 0;

  while (count < DESCRIPTORS &&
         (fds[count] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0)
    count++;
  for (int i = 0; i < count; i++)
    close(fds[i]);
  return count;
}

static int make_loop(lk_sync_client *c)
{
  int err = lk__loop_new(&c->loop, &c->mem);

  if (err != 0)
    return err;
  err = lk__driver_init(&c->driver, c->loop, &c->mem);
  if (err == 0)
    return 0;
  c->loop->type->free(c->loop);
  c->loop = NULL;
  return err;
}

/* A loop, and on it a client with its session lease, so that no lock is refused
 * for want of memory for that. */
static int make_client(lk_sync_client *c, const lk_sync_config *config)
{
  lk_client_config usual = {.size = sizeof usual};
  int count = free_descriptors();

  if (count < DESCRIPTORS)
    return log_system_error(
        config, "cannot start: no descriptors left (%d needed, %d free)",
        DESCRIPTORS, count);
  int err = make_loop(c);

  if (err == LK_ERR_SYSTEM)
    return log_system_error(config, "cannot start the event loop");
  if (err == 0)
    err =
        lk__driver_client_new(&c->client, &c->driver,
                              config->client == NULL ? &usual : config->client);
  if (err == 0)
    err = lk_lease_configure(c->client, config->lease);
  return err;
}

static void free_loop(lk_sync_client *c)
{
  if (c->loop == NULL)
    return;
  lk__driver_free(&c->driver);
  c->loop->type->free(c->loop);
}

static lk_sync_client *new_handle(const lk_sync_config *config)
{
  const lk_mem *mem = client_options(config).mem;

  if (mem == NULL)
    mem = &lk__mem_libc;
  lk_sync_client *c = lk__mem_new(mem, sizeof *c);

  if (c == NULL)
    return NULL;
  c->mem = *mem;
  c->on_state = config->on_state;
  c->arg = config->arg;
  lk__list_init(&c->tasks);
  lk__safe_list_init(&c->errands);
  lk__safe_list_init(&c->holders);
  return c;
}

static int make_handle(lk_sync_client **out, const lk_sync_config *config)
{
  int err = LK_ERR_SYSTEM;
  lk_sync_client *c = new_handle(config);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  if (pthread_mutex_init(&c->mutex, NULL) != 0)
    goto fail_mutex;
  if (pthread_cond_init(&c->left, NULL) != 0)
    goto fail_cond;
  if (pthread_key_create(&c->held, lk__holders_thread_ended) != 0) {
    err = log_system_error(config, "cannot start: no pthread_key left");
    goto fail_key;
  }
  err = make_client(c, config);
  if (err == 0 && !start_thread(c))
    err = log_system_error(config, "cannot start a thread");
  if (err == 0) {
    *out = c;
    return 0;
  }
  free_loop(c); /* and its client */
  pthread_key_delete(c->held);
fail_key:
  pthread_cond_destroy(&c->left);
fail_cond:
  pthread_mutex_destroy(&c->mutex);
fail_mutex:
  lk__mem_free(&c->mem, c);
  return err;
}

int lk_sync_client_new(lk_sync_client **out, const lk_sync_config *config)
{
  static const lk_sized what = LK_SIZED(lk_sync_config);
  lk_sync_config own;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (lk__sized_copy(&what, &own, config) != NULL)
    return LK_ERR_BAD_ARGUMENT;
  int cancelling = lk__sync_hold_cancel();
  int err = make_handle(out, &own);

  lk__sync_restore_cancel(cancelling);
  return err;
}

void lk_sync_client_free(lk_sync_client *c)
{
  if (lk__sync_refusal(c) != 0)
    return;
  int cancelling = lk__sync_hold_cancel();

  pthread_mutex_lock(&c->mutex);
  c->freed = true;
  pthread_mutex_unlock(&c->mutex);
  lk__driver_wake(&c->driver);
  pthread_join(c->thread, NULL);
  pthread_mutex_lock(&c->mutex);
  while (c->inside > 0)
    pthread_cond_wait(&c->left, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
  pthread_key_delete(c->held);
  lk__holders_free(c);
  free_loop(c);
  pthread_cond_destroy(&c->left);
  pthread_mutex_destroy(&c->mutex);
  lk__mem_free(&c->mem, c);
  lk__sync_restore_cancel(cancelling);
}

/* ---- close --------------------------------------------------------------- */

static void on_closed(lk_client *client, int err, void *arg)
{
  (void)client;
  lk__blocking_call_complete(arg, err);
}

static void begin_close(lk_blocking_call *e)
{
  lk_sync_client *c = e->client;
  int err = LK_ERR_CLOSED;

  if (!c->closed) {
    c->closed = true;
    lk__holders_close(c);
    err = lk_client_close(c->client, on_closed, e);
  }
  if (err != 0)
    lk__blocking_call_complete(e, err);
}

int lk_sync_client_close(lk_sync_client *c)
{
  lk_blocking_call e;

  return lk__blocking_call_do(&e, c, begin_close);
}

/* ---- facts --------------------------------------------------------------- */

lk_state lk_sync_client_state(const lk_sync_client *c)
{
  return c == NULL ? LK_STATE_CLOSED : (lk_state)atomic_load(&c->state);
}

int64_t lk_sync_client_clock(const lk_sync_client *c)
{
  return c == NULL ? 0 : lk__driver_clock(&c->driver);
}

/** A function to be called on the handle's thread. */
typedef struct visit {
  lk_blocking_call errand;
  void (*what)(lk_client *client, void *arg);
  void *arg;
} visit;

static void begin_visit(lk_blocking_call *e)
{
  visit *v = LK_OWNER(e, visit, errand);

  v->what(e->client->client, v->arg);
  lk__blocking_call_complete(e, 0);
}

int lk_sync_client_run(lk_sync_client *c,
                       void (*what)(lk_client *client, void *arg), void *arg)
{
  visit v = {.what = what, .arg = arg};

  if (what == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__blocking_call_do(&v.errand, c, begin_visit);
}

/** What lk_sync_client_set_hosts() wants. */
typedef struct rehost {
  const char *hosts;
  int err;
} rehost;

static void set_hosts(lk_client *client, void *arg)
{
  rehost *r = arg;

  r->err = lk_client_set_hosts(client, r->hosts);
}

int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts)
{
  rehost r = {.hosts = hosts};
  int err = lk_sync_client_run(c, set_hosts, &r);

  return err == 0 ? r.err : err;
}

/** What lk_sync_client_last_error() and lk_sync_client_tls_cause() want. */
typedef struct question {
  char *text;
  size_t size;
  int err;
  lk_tls_cause cause;
} question;

static void look(lk_client *client, void *arg)
{
  question *q = arg;
  const char *text;

  q->err = lk_client_last_error(client, &text);
  q->cause = lk_client_tls_cause(client);
  if (q->size > 0)
    snprintf(q->text, q->size, "%s", text);
}

int lk_sync_client_last_error(lk_sync_client *c, char *text, size_t size)
{
  question q = {.text = text, .size = size};

  if (text == NULL && size > 0)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk_sync_client_run(c, look, &q);

  if (err != 0 && size > 0)
    text[0] = '\0';
  return err == 0 ? q.err : err;
}

lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c)
{
  question q = {.cause = LK_TLS_OTHER};

  (void)lk_sync_client_run(c, look, &q);
  return q.cause;
}
