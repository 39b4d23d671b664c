/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/handle.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "sync/blocking_call.h"
#include "sync/call_entry.h"
#include "sync/client_thread.h"
#include "sync/lock_owners.h"

/* ---- life ---------------------------------------------------------------- */

/* All signals are blocked on the thread, since the program does not expect its
   handlers there. The mutex delays the thread until `thread` is set. */
static bool start_thread(lk_sync_client *c)
{
  sigset_t all_signals, previous_mask;

  sigfillset(&all_signals);
  pthread_mutex_lock(&c->mutex);
  pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask);
  int error = pthread_create(&c->thread, NULL, lk__sync_thread_main, c);

  pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
  pthread_mutex_unlock(&c->mutex);
  return error == 0;
}

/* A copy of the client's options. All are 0 if there are none, or if the size
   of the struct is wrong. */
static lk_client_config client_options(const lk_sync_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_client_config);
  lk_client_config copy;
  const char *refusal = lk__sized_struct_copy(&sized, &copy, config->client);

  if (refusal != NULL)
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

/* The file descriptors of a handle: one each for the loop, its timer, its
   wakeups and a connection. */
enum { DESCRIPTORS = 4 };

/* How many of the DESCRIPTORS that a handle needs can be opened now. With O_PATH,
   the root directory can be opened without any permission. */
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
  int err = lk__loop_new(&c->loop, &c->mem);

  if (err != 0)
    return err;
  err = lk__driver_init(&c->driver, c->loop, &c->mem);
  if (err == 0)
    return 0;
  lk__loop_free(c->loop);
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
  lk__loop_free(c->loop);
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
  lk__safe_list_init(&c->lock_owners);
  return c;
}

static int make_handle(lk_sync_client **out, const lk_sync_config *config)
{
  int err = LK_ERR_SYSTEM; /* unless a later step gives another error */
  lk_sync_client *c = new_handle(config);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  if (pthread_mutex_init(&c->mutex, NULL) != 0)
    goto fail_mutex;
  if (pthread_cond_init(&c->no_call_inside, NULL) != 0)
    goto fail_cond;
  if (pthread_key_create(&c->owners_key, lk__lock_owners_thread_ended) != 0) {
    err = log_system_error(config, "cannot start: no pthread_key left");
    goto fail_key;
  }
  err = make_loop_and_client(c, config);
  if (err == 0 && !start_thread(c))
    err = log_system_error(config, "cannot start a thread");
  if (err == 0) {
    *out = c;
    return 0;
  }
  free_loop_and_client(c);
  pthread_key_delete(c->owners_key);
fail_key:
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
  const char *refusal = lk__sized_struct_copy(&sized, &copy, config);

  if (refusal != NULL)
    return LK_ERR_BAD_ARGUMENT;
  int cancel_state = lk__sync_disable_cancel();
  int err = make_handle(out, &copy);

  lk__sync_restore_cancel(cancel_state);
  return err;
}

/* Does nothing if `c` is NULL, in a child process, and on the thread of the
   handle, which cannot wait for its own end. */
void lk_sync_client_free(lk_sync_client *c)
{
  if (lk__sync_refusal(c) != 0)
    return;
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
  pthread_key_delete(c->owners_key);
  lk__lock_owners_free(c);
  free_loop_and_client(c);
  pthread_cond_destroy(&c->no_call_inside);
  pthread_mutex_destroy(&c->mutex);
  lk__mem_free(&c->mem, c);
  lk__sync_restore_cancel(cancel_state);
}

/* ---- close --------------------------------------------------------------- */

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
  lk__lock_owners_close(c);
  int err = lk_client_close(c->client, on_closed, b);

  if (err != 0)
    lk__blocking_call_complete(b, err);
}

int lk_sync_client_close(lk_sync_client *c)
{
  lk_blocking_call b;

  return lk__blocking_call_do(&b, c, begin_close);
}
