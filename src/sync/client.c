/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "poll/loop.h"
#include "sync/call.h"
#include "sync/lock.h"

/* ---- the thread of the handle -------------------------------------------- */

static void on_driver_wake(lk_driver *d)
{
  lk_sync_client *c = LK_OWNER(d, lk_sync_client, driver);

  bool freeing = lk__tasks_begin(c);

  if (freeing)
    c->must_stop = true;
  if (atomic_exchange(&c->cancel_was_set, false))
    lk__blocking_calls_interrupt_cancelled(c);
}

/** A call of lk_sync_client_wait_state(). */
typedef struct state_wait {
  lk_wait wait; /* in lk_sync_client.state_waits */
  lk_state state;
} state_wait;

/* The client is in `state`, and stays there if it is closed. */
static void end_state_waits(lk_sync_client *c, lk_state state)
{
  for (lk_link *l = c->state_waits.next, *next; l != &c->state_waits;
       l = next) {
    state_wait *w = LK_OWNER(LK_OWNER(l, lk_wait, link), state_wait, wait);

    next = l->next;
    if (w->state == state)
      lk__wait_end(&w->wait, 0);
    else if (state == LK_STATE_CLOSED)
      lk__wait_end(&w->wait, LK_ERR_CLOSED);
  }
}

static void on_client_state(lk_client *client, lk_state state, int err,
                            void *arg)
{
  lk_sync_client *c = arg;

  (void)client;
  atomic_store(&c->state, (int)state);
  end_state_waits(c, state);
  if (c->on_state != NULL)
    c->on_state(c, state, err, c->arg);
}

/* Store the lease deadline for all threads. The session lease
   has handled the reply before this listener. */
static void on_reply(lk_client *client, const lk_reply *reply, void *arg)
{
  lk_sync_client *c = arg;
  int64_t lease_ms = lk_lease_deadline(c->client);

  (void)client;
  (void)reply;
  if (lease_ms == c->lease_ms)
    return;
  c->lease_ms = lease_ms;
  lk__sync_locks_publish(c);
}

/* The handle is being freed. Tasks that were posted earlier still begin, and
   are refused because `closing` is set. lk_client_free() completes all
   requests. */
static void end_thread(lk_sync_client *c)
{
  c->closing = true;
  (void)lk__tasks_begin(c);
  lk_client_free(c->client);
}

/* The main function of the thread of the handle, which runs until the handle
   is freed. `c` is a lk_sync_client. */
static void *sync_thread_main(void *arg)
{
  lk_sync_client *c = arg;

  /* start_thread() holds the mutex until it has set `c->thread`. */
  pthread_mutex_lock(&c->mutex);
  pthread_mutex_unlock(&c->mutex);
  c->listener = (lk_listener){.size = sizeof(lk_listener),
                              .state = on_client_state,
                              .reply = on_reply,
                              .arg = c};
  lk_client_attach(c->client, &c->listener);
  c->driver.on_wake = on_driver_wake;
  lk__loop_ref(c->loop); /* it runs until `must_stop` is set */
  lk__poll_loop_run(c->loop, &c->must_stop);
  end_thread(c);
  return NULL;
}

/* All signals are blocked on the thread, since the program does not expect its
   handlers there. The mutex delays the thread until `thread` is set. */
static bool start_thread(lk_sync_client *c)
{
  sigset_t all_signals, previous_mask;

  sigfillset(&all_signals);
  pthread_mutex_lock(&c->mutex);
  pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask);
  int error = pthread_create(&c->thread, NULL, sync_thread_main, c);

  pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
  pthread_mutex_unlock(&c->mutex);
  return error == 0;
}

/* ---- options, and errors of the creation --------------------------------- */

/* A copy of the client's options. All are 0 if there are none, or if the size
   of the struct is wrong. */
static lk_client_config client_options(const lk_sync_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_client_config);
  lk_client_config copy;

  if (lk__sized_struct_copy(&sized, &copy, config->client) != LK_SIZE_OK)
    copy = (lk_client_config){0};
  return copy;
}

/* Logs an error, if there is a log function. Always returns LK_ERR_SYSTEM. */
static int __attribute__((format(printf, 2, 3)))
log_system_error(const lk_sync_config *config, const char *format, ...)
{
  lk_client_config options = client_options(config);
  char text[160];
  va_list args;

  if (options.log == NULL)
    return LK_ERR_SYSTEM;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  options.log(options.log_arg, LK_LOG_ERROR, LK_ERR_SYSTEM, text);
  return LK_ERR_SYSTEM;
}

/* ---- creation ------------------------------------------------------------ */

/* The file descriptors of a handle: one each for the timer and the wakeups of
   its loop, and a connection. */
enum { DESCRIPTORS = 3 };

/* How many of the DESCRIPTORS that a handle needs can be opened now. With
   O_PATH, the root directory can be opened without any permission. */
static int count_free_descriptors(void)
{
  int fds[DESCRIPTORS], count = 0;

  while (count < DESCRIPTORS &&
         (fds[count] = open("/", O_PATH | O_CLOEXEC)) >= 0)
    count++;
  for (int i = 0; i < count; i++)
    close(fds[i]);
  return count;
}

static int make_loop_and_driver(lk_sync_client *c)
{
  int err = lk__poll_loop_new(&c->loop, &c->mem);

  if (err != 0)
    return err;
  err = lk__driver_init(&c->driver, c->loop, &c->mem);
  if (err == 0)
    return 0;
  lk__poll_loop_free(c->loop);
  c->loop = NULL;
  return err;
}

/* The session lease of the client is made here, too, so that no lock is refused
   later because there is no memory for the lease. If this fails, the caller
   frees what was made. */
static int make_loop_and_client(lk_sync_client *c, const lk_sync_config *config)
{
  lk_client_config defaults = {.size = sizeof defaults};
  int count = count_free_descriptors();

  if (count < DESCRIPTORS)
    return log_system_error(
        config, "cannot start: no descriptors left (%d needed, %d free)",
        DESCRIPTORS, count);
  int err = make_loop_and_driver(c);

  if (err == LK_ERR_SYSTEM)
    return log_system_error(config, "cannot start the event loop");
  if (err == 0)
    err = lk__driver_client_new(&c->client, &c->driver,
                                config->client == NULL ? &defaults
                                                       : config->client);
  if (err == 0)
    err = lk_lease_configure(c->client, config->lease);
  return err;
}

/* Accepts a handle for which no loop, driver or client was made. */
static void free_loop_and_client(lk_sync_client *c)
{
  lk__driver_free(&c->driver); /* frees its client, too */
  lk__poll_loop_free(c->loop);
}

/* Options that one call alone can have. */
static bool has_options_of_one_call(const lk_sync_call *call)
{
  return call->deadline_ms != 0 || call->cancel != NULL ||
         call->until_disconnect || call->on_event != NULL ||
         call->watch != NULL;
}

/* Copy the options of calls that are given NULL. Returns 0 or
   LK_ERR_BAD_ARGUMENT. */
static int copy_default_call(lk_sync_call *out, const lk_sync_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_sync_call);

  if (lk__sized_struct_copy(&sized, out, config->call) != LK_SIZE_OK ||
      has_options_of_one_call(out))
    return LK_ERR_BAD_ARGUMENT;
  switch (out->offline) {
  case LK_OFFLINE_WAIT: return 0;
  case LK_OFFLINE_FAIL: return out->repeat ? LK_ERR_BAD_ARGUMENT : 0;
  }
  return LK_ERR_BAD_ARGUMENT;
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
  lk__safe_list_init(&c->interruptible);
  lk__list_init(&c->locks);
  lk__list_init(&c->state_waits);
  return c;
}

static int make_handle(lk_sync_client **out, const lk_sync_config *config,
                       const lk_sync_call *default_call)
{
  int err = LK_ERR_SYSTEM; /* unless a later step gives another error */
  lk_sync_client *c = new_handle(config);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  c->has_default_call = config->call != NULL;
  c->default_call = *default_call;
  if (pthread_mutex_init(&c->mutex, NULL) != 0)
    goto fail_mutex;
  if (pthread_cond_init(&c->no_call_inside, NULL) != 0)
    goto fail_cond;
  err = make_loop_and_client(c, config);
  if (err == 0 && !start_thread(c))
    err = log_system_error(config, "cannot start a thread");
  if (err == 0) {
    *out = c;
    return 0;
  }
  free_loop_and_client(c);
  pthread_cond_destroy(&c->no_call_inside);
fail_cond:
  pthread_mutex_destroy(&c->mutex);
fail_mutex:
  lk__mem_free(&c->mem, c);
  return err;
}

int lk_sync_client_new(lk_sync_client **out, const lk_sync_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_sync_config);
  lk_sync_config copy;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  lk_sync_call default_call;

  if (lk__sized_struct_copy(&sized, &copy, config) != LK_SIZE_OK ||
      copy_default_call(&default_call, &copy) != 0)
    return LK_ERR_BAD_ARGUMENT;
  int cancel_state = lk__sync_disable_cancel();
  int err = make_handle(out, &copy, &default_call);

  lk__sync_restore_cancel(cancel_state);
  return err;
}

/* ---- queries ------------------------------------------------------------- */

lk_state lk_sync_client_state(const lk_sync_client *c)
{
  return c == NULL ? LK_STATE_CLOSED : (lk_state)atomic_load(&c->state);
}

/* A client that is closing reaches LK_STATE_CLOSED, and no other state. */
static void begin_state_wait(lk_blocking_call *b)
{
  state_wait *w = LK_OWNER(b, state_wait, wait.call);
  lk_state now = lk_client_state(b->client->client);
  int err = lk__blocking_call_refusal(b);

  if (now == LK_STATE_CLOSED)
    err = LK_ERR_CLOSED;
  else if (err == LK_ERR_CLOSED && w->state == LK_STATE_CLOSED)
    err = 0;
  if (w->state == now)
    lk__blocking_call_complete(b, 0);
  else if (err != 0)
    lk__blocking_call_complete(b, err);
  else
    lk__wait_add(&w->wait, &b->client->state_waits);
}

int lk_sync_client_wait_state(lk_sync_client *c, lk_state state,
                              const lk_sync_call *call)
{
  state_wait w = {.state = state};
  size_t *const no_object = NULL;

  return lk__wait_do(&w.wait, c, no_object, call, begin_state_wait);
}

int64_t lk_sync_client_clock(const lk_sync_client *c)
{
  return c == NULL ? 0 : lk__driver_clock(&c->driver);
}

/* ---- functions that run on the thread of the handle ---------------------- */

/** A function that is called on the thread of the handle. */
typedef struct run_call {
  lk_blocking_call call;
  void (*function)(lk_client *client, void *arg);
  void *arg;
} run_call;

static void begin_run(lk_blocking_call *b)
{
  run_call *run = LK_OWNER(b, run_call, call);

  run->function(b->client->client, run->arg);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_client_run_on_thread(lk_sync_client *c,
                                 void (*function)(lk_client *client, void *arg),
                                 void *arg)
{
  run_call run = {.function = function, .arg = arg};

  if (function == NULL)
    return LK_ERR_BAD_ARGUMENT;
  bool on_thread_of_handle = lk__sync_refusal(c) == LK_ERR_STATE;

  if (!on_thread_of_handle)
    return lk__blocking_call_do(&run.call, c, begin_run);
  function(c->client, arg);
  return 0;
}

/** Argument and result of lk_sync_client_set_hosts(). */
typedef struct hosts_change {
  const char *hosts;
  int err; /**< the result of lk_client_set_hosts() */
} hosts_change;

static void set_hosts(lk_client *client, void *arg)
{
  hosts_change *change = arg;

  change->err = lk_client_set_hosts(client, change->hosts);
}

int lk_sync_client_set_hosts(lk_sync_client *c, const char *hosts)
{
  hosts_change change = {.hosts = hosts};
  int err = lk_sync_client_run_on_thread(c, set_hosts, &change);

  return err == 0 ? change.err : err;
}

static void read_session(lk_client *client, void *arg)
{
  *(lk_session *)arg = lk_client_session(client);
}

lk_session lk_sync_client_session(lk_sync_client *c)
{
  lk_session session = {.id = 0};

  (void)lk_sync_client_run_on_thread(c, read_session, &session);
  return session;
}

static void read_timeout(lk_client *client, void *arg)
{
  *(int32_t *)arg = lk_client_timeout_ms(client);
}

int32_t lk_sync_client_timeout_ms(lk_sync_client *c)
{
  int32_t timeout_ms = 0;

  (void)lk_sync_client_run_on_thread(c, read_timeout, &timeout_ms);
  return timeout_ms;
}

static void read_zxid(lk_client *client, void *arg)
{
  *(int64_t *)arg = lk_client_zxid(client);
}

int64_t lk_sync_client_zxid(lk_sync_client *c)
{
  int64_t zxid = 0;

  (void)lk_sync_client_run_on_thread(c, read_zxid, &zxid);
  return zxid;
}

/** A text that the client has. */
typedef struct text_query {
  const char *(*read)(const lk_client *client);
  char *text;
  size_t size;
} text_query;

static void read_text(lk_client *client, void *arg)
{
  text_query *q = arg;

  snprintf(q->text, q->size, "%s", q->read(client));
}

static int query_text(lk_sync_client *c, char *text, size_t size,
                      const char *(*read)(const lk_client *client))
{
  text_query q = {.read = read, .text = text, .size = size};

  if (text == NULL || size == 0)
    return LK_ERR_BAD_ARGUMENT;
  text[0] = '\0';
  return lk_sync_client_run_on_thread(c, read_text, &q);
}

int lk_sync_client_server(lk_sync_client *c, char *text, size_t size)
{
  return query_text(c, text, size, lk_client_server);
}

int lk_sync_client_peer(lk_sync_client *c, char *text, size_t size)
{
  return query_text(c, text, size, lk_client_peer);
}

static void leave_server(lk_client *client, void *arg)
{
  *(int *)arg = lk_client_leave_server(client);
}

int lk_sync_client_leave_server(lk_sync_client *c)
{
  int result;
  int err = lk_sync_client_run_on_thread(c, leave_server, &result);

  return err == 0 ? result : err;
}

/** Arguments and results of lk_sync_client_last_error() and
    lk_sync_client_tls_cause(). */
typedef struct last_error_query {
  char *text;  /**< filled with the text of the error */
  size_t size; /**< of `text`; 0: the text is not wanted */
  int err;     /**< the last error of the client */
  lk_tls_cause cause;
} last_error_query;

static void read_last_error(lk_client *client, void *arg)
{
  last_error_query *q = arg;
  const char *text;

  q->err = lk_client_last_error(client, &text);
  q->cause = lk_client_tls_cause(client);
  if (q->size > 0)
    snprintf(q->text, q->size, "%s", text);
}

int lk_sync_client_last_error(lk_sync_client *c, char *text, size_t size)
{
  last_error_query q = {.text = text, .size = size};

  if (text == NULL && size > 0)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk_sync_client_run_on_thread(c, read_last_error, &q);

  if (err != 0 && size > 0)
    text[0] = '\0';
  return err == 0 ? q.err : err;
}

lk_tls_cause lk_sync_client_tls_cause(lk_sync_client *c)
{
  last_error_query q = {.cause = LK_TLS_OTHER}; /* stays after a failure */

  (void)lk_sync_client_run_on_thread(c, read_last_error, &q);
  return q.cause;
}

/* ---- end ----------------------------------------------------------------- */

static void on_closed(lk_client *client, int err, void *arg)
{
  (void)client;
  lk__blocking_call_complete(arg, err);
}

static void begin_close(lk_blocking_call *b)
{
  lk_sync_client *c = b->client;

  if (c->closing) {
    lk__blocking_call_complete(b, LK_ERR_CLOSED);
    return;
  }
  c->closing = true;
  int err = lk_client_close(c->client, on_closed, b);

  if (err != 0)
    lk__blocking_call_complete(b, err);
}

int lk_sync_client_close(lk_sync_client *c)
{
  lk_blocking_call b;

  return lk__blocking_call_do(&b, c, begin_close);
}

/* The thread of the handle cannot wait for its own end. */
int lk_sync_client_free(lk_sync_client *c)
{
  int err = c == NULL ? 0 : lk__sync_refusal(c);

  if (c == NULL || err != 0)
    return lk__sync_free_result(c, err, "lk_sync_client_free");
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&c->mutex);
  c->freeing = true;
  pthread_mutex_unlock(&c->mutex);
  lk__driver_wake(&c->driver);
  pthread_join(c->thread, NULL);
  pthread_mutex_lock(&c->mutex);
  while (c->calls_inside > 0)
    pthread_cond_wait(&c->no_call_inside, &c->mutex);
  pthread_mutex_unlock(&c->mutex);
  free_loop_and_client(c);
  pthread_cond_destroy(&c->no_call_inside);
  pthread_mutex_destroy(&c->mutex);
  lk__mem_free(&c->mem, c);
  lk__sync_restore_cancel(cancel_state);
  return 0;
}
