/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The blocking interface if no server answers. */

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/engine/client.h"
#include "support/suite.h"
#include "support/waiters.h"
#include "sync/call.h"
#include "unit/fake/sockets.h"

static lk_sync_client *client;
static lk_sync_lock *lock;
static lk_sync_lock *tried; /* another handle of the same lock */
static lk_sync_subscription *subscription;
static shared_mem mem;
static char hosts[64];

static int frees_refused; /* in the log; changed on the thread of the handle */

static void count_refused_frees(void *arg, lk_log_level level, int err,
                                const char *text)
{
  (void)arg, (void)level;
  if (err == LK_ERR_STATE && strstr(text, "in a callback frees nothing"))
    frees_refused++;
}

static const lk_sync_call *default_call; /* of new clients */

static int make_client(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = hosts,
                                    .mem = &mem.mem,
                                    .log = count_refused_frees};
  lk_sync_config config = {
      .size = sizeof config, .client = &client_config, .call = default_call};

  return lk_sync_client_new(&client, &config);
}

static void prepare(void)
{
  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  shared_mem_init(&mem);
}

static void start(void)
{
  prepare();
  ck_assert_int_eq(make_client(), 0);
  ck_assert_int_eq(lk_sync_lock_new(&lock, client, "/lock", NULL, NULL, NULL),
                   0);
  ck_assert_int_eq(lk_sync_lock_clone(&tried, lock, NULL), 0);
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/x", NULL),
                   0);
}

static void stop(void)
{
  lk_sync_lock_free(lock);
  lk_sync_lock_free(tried);
  lk_sync_subscription_free(subscription);
  lk_sync_client_free(client);
  ck_assert_uint_eq(mem.live, 0);
}

/* ---- each call that waits ------------------------------------------------ */

static int do_create(void *call)
{
  return lk_sync_create(client, NULL, "/x", lk_text("x"), NULL, 0, call);
}

static int do_delete(void *call)
{
  return lk_sync_delete(client, "/x", -1, call);
}

static int do_exists(void *call)
{
  lk_stat stat;

  return lk_sync_exists(client, &stat, "/x", call);
}

static int do_get(void *call)
{
  lk_sync_result *r;
  int err = lk_sync_get(client, &r, "/x", call);

  ck_assert_ptr_null(r);
  return err;
}

static int do_set(void *call)
{
  return lk_sync_set(client, NULL, "/x", lk_text("x"), -1, call);
}

static int do_children(void *call)
{
  lk_sync_result *r;
  int err = lk_sync_get_children(client, &r, "/x", call);

  ck_assert_ptr_null(r);
  return err;
}

static int do_sync(void *call)
{
  return lk_sync_server_sync(client, "/x", call);
}

static int do_multi(void *call)
{
  lk_op op = lk_op_check("/x", -1);
  lk_sync_result *r;
  int err = lk_sync_multi(client, &r, &op, 1, call);

  ck_assert_ptr_null(r);
  return err;
}

static int do_auth(void *call)
{
  return lk_sync_add_auth(client, "digest", lk_text("bob:secret"), call);
}

static int do_acquire(void *call)
{
  return lk_sync_lock_acquire(lock, call);
}

/* Without options a try would not wait. */
static int do_try(void *call)
{
  static const lk_sync_call no_limit = {.size = sizeof no_limit};

  return lk_sync_lock_try(tried, call == NULL ? &no_limit : call);
}

static int do_next(void *call)
{
  lk_sync_result *r;
  int err = lk_sync_subscription_next(subscription, &r, call);

  ck_assert_ptr_null(r);
  return err;
}

static int (*const calls[])(void *) = {
    do_create,   do_delete, do_exists, do_get,  do_set,     do_next,
    do_children, do_sync,   do_multi,  do_auth, do_acquire, do_try,
};

enum {
  CALLS = sizeof calls / sizeof *calls,
  CALLS_WITHOUT_LOCK = CALLS - 2 /* all but do_acquire() and do_try() */
};

/* The result of call `i` if its client is closed before it was ever connected.
 * Writes were certainly not sent. */
static int closed_error(int i)
{
  bool writes = calls[i] == do_create || calls[i] == do_delete ||
                calls[i] == do_set || calls[i] == do_multi;

  return writes ? LK_ERR_NOT_SENT : LK_ERR_CLOSED;
}

/* On a busy machine the close may come before the call has begun. */
static bool is_closed_error(int i, int err)
{
  return err == closed_error(i) || err == LK_ERR_CLOSED;
}

static void on_event(lk_sync_client *c, const lk_event *event, void *arg)
{
  (void)c;
  (void)event;
  ++*(int *)arg;
}

/* ---- ends ---------------------------------------------------------------- */

START_TEST(a_call_ends_at_its_deadline)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 20};

  start();
  for (int i = 0; i < CALLS; i++) {
    int64_t begun = lk_sync_client_clock(client);

    ck_assert_int_eq(calls[i](&call), LK_ERR_DEADLINE);
    ck_assert_int_ge(lk_sync_client_clock(client), begun + 20);
    ck_assert_int_lt(lk_sync_client_clock(client), begun + 5000);
  }
  stop();
}
END_TEST

static int do_try_without_options(void *arg)
{
  (void)arg;
  return lk_sync_lock_try(tried, NULL);
}

START_TEST(try_without_options_does_not_wait_for_a_connection)
{
  lk_sync_call while_it_tries = {.size = sizeof while_it_tries,
                                 .timeout_ms = 100};
  waiter w;

  start();
  waiter_start(&w, do_try_without_options, NULL);
  ck_assert_int_eq(do_get(&while_it_tries), LK_ERR_DEADLINE);
  lk_sync_client_close(client); /* ends a try that waits */
  ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_CONNECTED);
  stop();
}
END_TEST

START_TEST(calls_without_options_have_those_of_the_client)
{
  const lk_sync_call soon = {
      .size = sizeof soon, .timeout_ms = 20, .repeat = true};

  default_call = &soon;
  start();
  for (int i = 0; i < CALLS; i++) {
    int64_t begun = lk_sync_client_clock(client);

    if (calls[i] == do_try)
      continue; /* it replaces NULL */
    ck_assert_msg(calls[i](NULL) == LK_ERR_DEADLINE, "call %d", i);
    ck_assert_int_ge(lk_sync_client_clock(client), begun + 20);
  }
  ck_assert_int_eq(do_try_without_options(NULL), LK_ERR_DEADLINE);
  stop();
  default_call = NULL;
}
END_TEST

START_TEST(options_of_one_call_are_no_defaults)
{
  lk_sync_watch *watch;
  const lk_sync_call refused[] = {
      {.size = sizeof(lk_sync_call), .deadline_ms = 1},
      {.size = sizeof(lk_sync_call), .cancel = (lk_sync_cancel *)&watch},
      {.size = sizeof(lk_sync_call), .until_disconnect = true},
      {.size = sizeof(lk_sync_call), .on_event = on_event},
      {.size = sizeof(lk_sync_call), .watch = &watch},
      {.size = sizeof(lk_sync_call), .offline = (lk_offline)7},
      {.size = sizeof(lk_sync_call),
       .repeat = true,
       .offline = LK_OFFLINE_FAIL},
      {.timeout_ms = 1}};

  prepare();
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    default_call = &refused[i];
    ck_assert_int_eq(make_client(), LK_ERR_BAD_ARGUMENT);
    ck_assert_ptr_null(client);
  }
  default_call = NULL;
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

/* Calls that send several requests wait, and so do locks. */
START_TEST(requests_that_fail_offline_do_not_wait)
{
  lk_sync_call fail = {
      .size = sizeof fail, .timeout_ms = 20000, .offline = LK_OFFLINE_FAIL};
  lk_sync_call fail_soon = {
      .size = sizeof fail_soon, .timeout_ms = 20, .offline = LK_OFFLINE_FAIL};

  start();
  for (int i = 0; i < CALLS; i++) {
    bool waits = calls[i] == do_next || calls[i] == do_auth ||
                 calls[i] == do_acquire || calls[i] == do_try;
    int err = calls[i](waits ? &fail_soon : &fail);

    ck_assert(waits ? err == LK_ERR_DEADLINE
                    : err == LK_ERR_NOT_CONNECTED || err == LK_ERR_NOT_SENT);
  }
  ck_assert_int_eq(lk_sync_delete_recursive(client, NULL, "/x", &fail),
                   LK_ERR_BAD_ARGUMENT);
  stop();
  default_call = &fail_soon;
  start();
  ck_assert_int_eq(lk_sync_delete_recursive(client, NULL, "/x", NULL),
                   LK_ERR_DEADLINE);
  stop();
  default_call = NULL;
}
END_TEST

static void count_open_requests(lk_client *c, void *arg)
{
  *(size_t *)arg = c->requests.open;
}

START_TEST(cancelled_request_that_waits_is_not_sent_any_more)
{
  lk_sync_call call = {.size = sizeof call};
  size_t open;
  waiter w;

  start();
  ck_assert_int_eq(lk_sync_cancel_new(&call.cancel, client), 0);
  lk_sync_client_run_on_thread(client, count_open_requests, &open);
  size_t open_before = open; /* that of the subscription */

  waiter_start(&w, do_set, &call);
  waiters_inside(client, 1);
  lk_sync_client_run_on_thread(client, count_open_requests, &open);
  ck_assert_uint_eq(open, open_before + 1);
  lk_sync_cancel_set(call.cancel);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CANCELLED);
  lk_sync_client_run_on_thread(client, count_open_requests, &open);
  ck_assert_uint_eq(open, open_before);
  lk_sync_cancel_free(call.cancel);
  stop();
}
END_TEST

START_TEST(last_error_explains_a_deadline)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 200};
  char text[80], truncated[8];

  start();
  ck_assert_int_eq(do_get(&call), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_client_last_error(client, text, sizeof text),
                   LK_ERR_CONNECT);
  ck_assert_ptr_nonnull(strstr(text, "Connection refused"));
  lk_sync_client_last_error(client, truncated, sizeof truncated);
  ck_assert_int_eq(strncmp(truncated, text, 7), 0);
  ck_assert_uint_eq(strlen(truncated), 7);
  ck_assert_int_eq(lk_sync_client_state(client), LK_STATE_CONNECTING);
  stop();
}
END_TEST

static int wait_for_state(void *state)
{
  return lk_sync_client_wait_state(client, *(lk_state *)state, NULL);
}

START_TEST(state_can_be_awaited)
{
  const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 20};
  lk_state awaited[] = {LK_STATE_CONNECTED, LK_STATE_CLOSED};
  waiter w[2];

  start();
  ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CONNECTING, NULL),
                   0);
  ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CONNECTED, &soon),
                   LK_ERR_DEADLINE);
  for (int i = 0; i < 2; i++)
    waiter_start(&w[i], wait_for_state, &awaited[i]);
  waiters_inside(client, 2);
  ck_assert_int_eq(lk_sync_client_close(client), 0);
  ck_assert_int_eq(waiter_end(&w[0]), LK_ERR_CLOSED);
  ck_assert_int_eq(waiter_end(&w[1]), 0);
  ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CLOSED, NULL), 0);
  ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CONNECTED, NULL),
                   LK_ERR_CLOSED);
  stop();
}
END_TEST

static int do_close(void *arg)
{
  (void)arg;
  return lk_sync_client_close(client);
}

/* The write that waits delays the close. */
START_TEST(end_of_a_closing_client_can_be_awaited)
{
  const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 1};
  waiter writing, closing;

  start();
  waiter_start(&writing, do_set, NULL);
  waiters_inside(client, 1);
  waiter_start(&closing, do_close, NULL);
  while (lk_sync_server_sync(client, "/x", &soon) != LK_ERR_CLOSED)
    ;
  ck_assert_int_ne(lk_sync_client_state(client), LK_STATE_CLOSED);
  ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CLOSED, NULL), 0);
  ck_assert_int_eq(waiter_end(&closing), 0);
  ck_assert_int_eq(waiter_end(&writing), LK_ERR_NOT_SENT);
  stop();
}
END_TEST

START_TEST(without_a_connection_there_is_a_server_and_no_peer)
{
  char server[sizeof hosts], peer[8] = "x";

  start();
  ck_assert_int_eq(lk_sync_client_server(client, server, sizeof server), 0);
  ck_assert_str_eq(server, hosts);
  ck_assert_int_eq(lk_sync_client_peer(client, peer, sizeof peer), 0);
  ck_assert_str_eq(peer, "");
  ck_assert_int_eq(lk_sync_client_session(client).id, 0);
  ck_assert_int_eq(lk_sync_client_timeout_ms(client), 30000);
  ck_assert_int_eq(lk_sync_client_zxid(client), 0);
  ck_assert_int_eq(lk_sync_client_server(client, server, 0),
                   LK_ERR_BAD_ARGUMENT);
  stop();
}
END_TEST

START_TEST(list_of_servers_can_be_changed)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 400};
  char text[80], other_hosts[24];

  start();
  ck_assert_int_eq(lk_sync_client_set_hosts(client, "a:0"), LK_ERR_BAD_HOSTS);
  ck_assert_int_eq(lk_sync_client_set_hosts(client, "a/x"),
                   LK_ERR_BAD_ARGUMENT);
  snprintf(other_hosts, sizeof other_hosts, "127.0.0.2:%u",
           (unsigned)sockets_dead_port());
  ck_assert_int_eq(lk_sync_client_set_hosts(client, other_hosts), 0);
  ck_assert_int_eq(do_get(&call), LK_ERR_DEADLINE);
  (void)lk_sync_client_last_error(client, text, sizeof text);
  ck_assert_int_eq(strncmp(text, other_hosts, strlen(other_hosts)), 0);
  lk_sync_client_close(client);
  ck_assert_int_eq(lk_sync_client_set_hosts(client, other_hosts),
                   LK_ERR_CLOSED);
  stop();
}
END_TEST

START_TEST(cancel_ends_all_calls_that_have_it)
{
  lk_sync_cancel *cancel;
  lk_sync_call call = {.size = sizeof call};
  lk_sync_call other = {.size = sizeof other, .timeout_ms = 20};
  waiter w[CALLS];

  start();
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, client), 0);
  call.cancel = cancel;
  for (int i = 0; i < CALLS; i++)
    waiter_start(&w[i], calls[i], &call);
  waiters_inside(client, CALLS);
  ck_assert_int_eq(do_get(&other), LK_ERR_DEADLINE);
  lk_sync_cancel_set(cancel);
  for (int i = 0; i < CALLS; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CANCELLED);
  for (int i = 0; i < CALLS; i++)
    ck_assert_int_eq(calls[i](&call), LK_ERR_CANCELLED);
  lk_sync_cancel_clear(cancel);
  call.timeout_ms = 1;
  ck_assert_int_eq(do_get(&call), LK_ERR_DEADLINE);
  lk_sync_cancel_free(cancel);
  lk_sync_cancel_free(NULL);
  stop();
}
END_TEST

static lk_sync_cancel *by_signal;

static void on_signal(int number)
{
  (void)number;
  lk_sync_cancel_set(by_signal);
}

static int interrupt(void *arg)
{
  waiters_inside(client, 1);
  return pthread_kill(*(pthread_t *)arg, SIGUSR1);
}

START_TEST(a_signal_handler_may_cancel)
{
  lk_sync_call call = {.size = sizeof call};
  pthread_t here = pthread_self();
  waiter w;

  start();
  ck_assert_int_eq(lk_sync_cancel_new(&by_signal, client), 0);
  call.cancel = by_signal;
  signal(SIGUSR1, on_signal);
  waiter_start(&w, interrupt, &here);
  ck_assert_int_eq(do_acquire(&call), LK_ERR_CANCELLED);
  ck_assert_int_eq(waiter_end(&w), 0);
  lk_sync_cancel_free(by_signal);
  stop();
}
END_TEST

START_TEST(closing_ends_all_calls)
{
  waiter w[CALLS];

  start();
  for (int i = 0; i < CALLS; i++)
    waiter_start(&w[i], calls[i], NULL);
  waiters_inside(client, CALLS);
  ck_assert_int_eq(lk_sync_client_close(client), 0);
  for (int i = 0; i < CALLS; i++)
    ck_assert(is_closed_error(i, waiter_end(&w[i])));
  for (int i = 0; i < CALLS; i++)
    ck_assert_int_eq(calls[i](NULL), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_client_close(client), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_sync_client_state(client), LK_STATE_CLOSED);
  stop();
}
END_TEST

/* Waits until another number of calls is inside: a close has entered, or has
 * already ended the other calls. */
static void wait_while_inside(size_t count)
{
  size_t present = count;

  while (present == count) {
    usleep(200);
    pthread_mutex_lock(&client->mutex);
    present = client->calls_inside;
    pthread_mutex_unlock(&client->mutex);
  }
}

START_TEST(freeing_ends_all_calls)
{
  waiter w[CALLS], closing;

  start();
  for (int i = 0; i < CALLS_WITHOUT_LOCK; i++)
    waiter_start(&w[i], calls[i], NULL);
  waiters_inside(client, CALLS_WITHOUT_LOCK);
  waiter_start(&closing, do_close, NULL);
  wait_while_inside(CALLS_WITHOUT_LOCK);
  stop();
  for (int i = 0; i < CALLS_WITHOUT_LOCK; i++)
    ck_assert(is_closed_error(i, waiter_end(&w[i])));
  int err = waiter_end(&closing);

  ck_assert(err == LK_ERR_CLOSED || err == 0);
}
END_TEST

START_TEST(free_waits_until_all_calls_have_returned)
{
  enum { MANY = 200 };
  waiter w[MANY];

  start();
  for (int i = 0; i < MANY; i++)
    waiter_start(&w[i], do_get, NULL);
  waiters_inside(client, MANY);
  stop();
  for (int i = 0; i < MANY; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CLOSED);
}
END_TEST

/* Memory whose next allocation by the thread that arms it begins to free the
 * client, and returns when the client takes no more calls. */
static struct {
  lk_mem mem;
  bool is_armed;
  pthread_t caller;
  waiter freeing;
} closing_mem;

static int do_free(void *arg)
{
  (void)arg;
  lk_sync_client_free(client);
  return 0;
}

static bool client_takes_calls(void)
{
  pthread_mutex_lock(&client->mutex);
  bool open = !client->freeing;

  pthread_mutex_unlock(&client->mutex);
  return open;
}

static void *resize_and_free_client(void *arg, void *p, size_t size)
{
  (void)arg;
  if (pthread_equal(closing_mem.caller, pthread_self()) &&
      closing_mem.is_armed && size > 0) {
    closing_mem.is_armed = false;
    waiter_start(&closing_mem.freeing, do_free, NULL);
    while (client_takes_calls())
      usleep(200);
  }
  return mem.mem.resize(mem.mem.arg, p, size);
}

/* The call is inside the handle when the free begins, but has not been given to
 * the handle's thread yet. */
static void call_while_freeing(lk_sync_call *call)
{
  lk_client_config client_config = {
      .size = sizeof client_config, .hosts = hosts, .mem = &closing_mem.mem};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  prepare();
  closing_mem.mem = (lk_mem){.resize = resize_and_free_client};
  closing_mem.caller = pthread_self();
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  closing_mem.is_armed = true;
  ck_assert_int_eq(do_get(call), LK_ERR_CLOSED);
  ck_assert(!closing_mem.is_armed);
  ck_assert_int_eq(waiter_end(&closing_mem.freeing), 0);
  ck_assert_uint_eq(mem.live, 0);
}

START_TEST(call_that_a_free_overtakes_leaves_no_watch)
{
  int event_count = 0;
  lk_sync_watch *watch = (lk_sync_watch *)(void *)&event_count; /* not NULL */
  lk_sync_call call = {
      .size = sizeof call, .on_event = on_event, .watch_arg = &event_count};

  call_while_freeing(&call);
  call.watch = &watch;
  call_while_freeing(&call);
  ck_assert_ptr_null(watch);
  ck_assert_int_eq(event_count, 0);
}
END_TEST

START_TEST(freeing_a_lock_ends_calls_that_wait_for_it)
{
  waiter w[2];

  start();
  waiter_start(&w[0], do_acquire, NULL);
  waiter_start(&w[1], do_try, NULL);
  waiters_inside(client, 2);
  lk_sync_lock_free(lock);
  lk_sync_lock_free(tried);
  ck_assert_int_eq(waiter_end(&w[0]), LK_ERR_CLOSED);
  ck_assert_int_eq(waiter_end(&w[1]), LK_ERR_CLOSED);
  lock = tried = NULL;
  stop();
}
END_TEST

START_TEST(freeing_a_subscription_ends_calls_that_wait_for_it)
{
  waiter w[2];

  start();
  for (int i = 0; i < 2; i++)
    waiter_start(&w[i], do_next, NULL);
  waiters_inside(client, 2);
  lk_sync_subscription_free(subscription);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(waiter_end(&w[i]), LK_ERR_CLOSED);
  lk_sync_subscription_free(NULL);
  subscription = NULL;
  stop();
}
END_TEST

/* Does not reach a cancellation point, since sanitizers do not support threads
 * that are cancelled. */
static int get_and_disable_cancellation(void *call)
{
  int err = lk_sync_get(client, NULL, "/x", call);

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  return err;
}

START_TEST(a_thread_is_not_cancelled_in_a_call)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 100};
  waiter w;

  start();
  waiter_start(&w, get_and_disable_cancellation, &call);
  waiters_inside(client, 1);
  ck_assert_int_eq(pthread_cancel(w.thread), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_DEADLINE);
  stop();
}
END_TEST

/* ---- refusals ------------------------------------------------------------ */

static void on_inner_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  (void)event;
  (void)arg;
}

START_TEST(invalid_arguments_are_refused)
{
  lk_sync_call call = {.size = 1};
  lk_lock_config config_of_wrong_size = {.size = 1};
  lk_lock_config with_callback = {.size = sizeof with_callback,
                                  .on_event = on_inner_event};
  lk_sync_config config = {.size = 1};
  int event_count = 0;
  lk_sync_watch *watch = (void *)&event_count;
  lk_sync_subscription *none;
  lk_sync_lock *other;

  start();
  for (int i = 0; i < CALLS; i++)
    ck_assert_int_eq(calls[i](&call), LK_ERR_BAD_ARGUMENT);
  call = (lk_sync_call){.size = sizeof call, .repeat = true};
  ck_assert_int_eq(do_create(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(do_auth(&call), LK_ERR_BAD_ARGUMENT);
  call = (lk_sync_call){.size = sizeof call,
                        .on_event = on_event,
                        .watch_arg = &event_count,
                        .watch = &watch};
  ck_assert_int_eq(do_set(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(watch);
  ck_assert_int_eq(do_auth(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(do_acquire(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(do_next(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_get(client, NULL, "x", NULL), LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_sync_subscribe_children(&none, client, "x", NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_ptr_null(none);
  ck_assert_int_eq(lk_sync_lock_new(&other, client, "/", NULL, NULL, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(
      lk_sync_lock_new(&other, client, "/x", &config_of_wrong_size, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(other);
  ck_assert_int_eq(
      lk_sync_lock_new(&other, client, "/x", &with_callback, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  stop();
  ck_assert_int_eq(lk_sync_client_new(&client, &config), LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(client);
  snprintf(hosts, sizeof hosts, ":::");
  ck_assert_int_eq(make_client(), LK_ERR_BAD_HOSTS);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(multilock_has_one_to_a_thousand_members)
{
  enum { MOST = 1000 };
  static lk_multilock_part members[MOST + 1];
  lk_sync_lock *l;

  for (size_t i = 0; i < MOST + 1; i++)
    members[i].path = "/x";
  start();
  ck_assert_int_eq(
      lk_sync_multilock_new(&l, client, NULL, 2, NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_sync_multilock_new(&l, client, members, 0, NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_multilock_new(&l, client, members, MOST + 1, NULL,
                                         NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(l);
  ck_assert_int_eq(
      lk_sync_multilock_new(&l, client, members, MOST, NULL, NULL, NULL, NULL),
      0);
  lk_sync_lock_free(l);
  stop();
}
END_TEST

START_TEST(lock_that_is_not_held_has_no_token_or_deadline)
{
  lk_op op = lk_op_check("/x", -1);
  lk_sync_result *r;

  start();
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_deadline(lock), INT64_MIN);
  ck_assert_uint_eq(lk_sync_lock_token(lock), 0);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 0);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_IDLE);
  ck_assert_int_ge(lk_sync_lock_fd(lock), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, NULL), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_verify(lock, NULL), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_guarded_multi(lock, &r, &op, 1, NULL),
                   LK_ERR_NOT_HELD);
  ck_assert_ptr_null(r);
  ck_assert_str_eq(lk_sync_lock_path(lock), "/lock");
  stop();
}
END_TEST

/* ---- the handle's own thread --------------------------------------------- */

/* In a callback: a request with a callback of its own, unless the client is
 * closed. */
static void make_request(lk_client *c, void *expected)
{
  ck_assert_ptr_eq(c, expected);
  int err = lk_exists(c, "/", NULL, NULL, NULL);

  ck_assert(err == 0 || err == LK_ERR_CLOSED);
}

static void check_refusals_on_thread_of_handle(lk_client *c, void *arg)
{
  sigset_t blocked;

  ck_assert_int_eq(lk_client_state(c), lk_sync_client_state(client));
  for (int i = 0; i < CALLS; i++)
    ck_assert_int_eq(calls[i](NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, make_request, c), 0);
  ck_assert_int_eq(lk_sync_client_close(client), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_client_set_hosts(client, "a:0"),
                   lk_client_state(c) == LK_STATE_CLOSED ? LK_ERR_CLOSED
                                                         : LK_ERR_BAD_HOSTS);
  ck_assert_int_eq(lk_sync_lock_verify(lock, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  frees_refused = 0;
  ck_assert_int_eq(lk_sync_lock_free(lock), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_subscription_free(subscription), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_client_free(client), LK_ERR_STATE);
  ck_assert_int_eq(frees_refused, 3);
  ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
  for (int number = 1; number < 32; number++) { /* the standard signals */
    if (number != SIGKILL && number != SIGSTOP)
      ck_assert_int_eq(sigismember(&blocked, number), 1);
  }
  *(bool *)arg = true;
}

START_TEST(waiting_in_a_callback_is_refused)
{
  bool called = false;

  start();
  ck_assert_int_eq(lk_sync_client_run_on_thread(
                       client, check_refusals_on_thread_of_handle, &called),
                   0);
  ck_assert(called);
  ck_assert_int_eq(lk_sync_client_close(client), 0);
  called = false;
  ck_assert_int_eq(lk_sync_client_run_on_thread(
                       client, check_refusals_on_thread_of_handle, &called),
                   0);
  ck_assert(called);
  stop();
}
END_TEST

static void on_state(lk_sync_client *c, lk_state state, int err, void *arg)
{
  (void)err;
  ck_assert_int_eq(lk_sync_client_state(c), state);
  *(lk_state *)arg = state;
}

START_TEST(state_changes_are_reported)
{
  lk_state last_state = LK_STATE_CONNECTING;
  lk_sync_config config = {
      .size = sizeof config, .on_state = on_state, .arg = &last_state};

  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  lk_sync_client_free(client);
  ck_assert_int_eq(last_state, LK_STATE_CLOSED);
  ck_assert_int_eq(lk_sync_client_new(&client, NULL), 0);
  lk_sync_client_free(client);
  lk_sync_client_free(NULL);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

/* Each call succeeds or is refused for want of memory. A refused call has no
 * effect. */
static void use_with_little_memory(void)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 5};
  lk_lock_config how = {.size = sizeof how,
                        .data = lk_text("who"),
                        .acl = lk_acl_creator(),
                        .parent_acl = lk_acl_open()};
  int event_count = 0;
  lk_sync_watch *watch;
  int err = make_client();

  if (err != 0) {
    ck_assert_int_eq(err, LK_ERR_NO_MEMORY);
    ck_assert_ptr_null(client);
    return;
  }
  err = lk_sync_lock_new(&lock, client, "/lock", &how, NULL, NULL);
  ck_assert(err == 0 || (err == LK_ERR_NO_MEMORY && lock == NULL));
  tried = NULL;
  err = lock == NULL ? 0 : lk_sync_lock_clone(&tried, lock, NULL);
  ck_assert(err == 0 || (err == LK_ERR_NO_MEMORY && tried == NULL));
  err = lk_sync_subscribe_data(&subscription, client, "/x", NULL);
  ck_assert(err == 0 || (err == LK_ERR_NO_MEMORY && subscription == NULL));
  for (int i = 0; i < CALLS && tried != NULL && subscription != NULL; i++) {
    err = calls[i](&call);
    ck_assert_msg(err == LK_ERR_DEADLINE || err == LK_ERR_NO_MEMORY,
                  "call %d: %s", i, lk_error_text(err));
  }
  call.on_event = on_event;
  call.watch_arg = &event_count;
  call.watch = &watch;
  err = do_get(&call);
  ck_assert(err == LK_ERR_DEADLINE || err == LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(watch);
  ck_assert_int_eq(event_count, 0);
  lk_sync_lock_free(lock);
  lk_sync_lock_free(tried);
  lk_sync_subscription_free(subscription);
  lk_sync_client_free(client);
}

START_TEST(without_memory_calls_are_refused)
{
  size_t n = 0;
  bool failed;

  prepare();
  do {
    shared_mem_init(&mem);
    mem.fail_at = ++n;
    lock = NULL;
    use_with_little_memory();
    ck_assert_uint_eq(mem.live, 0);
    failed = mem.count >= n;
  } while (failed);
}
END_TEST

/* ---- fork ---------------------------------------------------------------- */

static void live_in_child(void)
{
  lk_sync_cancel *cancel;
  lk_sync_lock *other;
  lk_sync_subscription *none;

  alarm(20);
  for (int i = 0; i < CALLS; i++) {
    if (calls[i](NULL) != LK_ERR_FORKED)
      _exit(1);
  }
  if (lk_sync_client_close(client) != LK_ERR_FORKED ||
      lk_sync_client_run_on_thread(client, check_refusals_on_thread_of_handle,
                                   NULL) != LK_ERR_FORKED ||
      lk_sync_client_set_hosts(client, "a") != LK_ERR_FORKED ||
      lk_sync_lock_release(lock) != LK_ERR_FORKED ||
      lk_sync_lock_release_wait(lock, NULL) != LK_ERR_FORKED ||
      lk_sync_lock_fd(lock) != LK_ERR_FORKED || lk_sync_lock_ok(lock))
    _exit(2);
  if (lk_sync_cancel_new(&cancel, client) != LK_ERR_FORKED || cancel != NULL ||
      lk_sync_lock_new(&other, client, "/x", NULL, NULL, NULL) !=
          LK_ERR_FORKED ||
      lk_sync_lock_clone(&other, lock, NULL) != LK_ERR_FORKED ||
      lk_sync_subscribe_data(&none, client, "/x", NULL) != LK_ERR_FORKED)
    _exit(3);
  lk_sync_lock_free(lock);
  lk_sync_subscription_free(subscription);
  lk_sync_client_free(client);
  _exit(0);
}

static int keep_busy(void *cancel)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 1, .cancel = cancel};

  while (do_exists(&call) == LK_ERR_DEADLINE)
    ;
  return 0;
}

START_TEST(forked_child_holds_nothing_and_does_not_hang)
{
  lk_sync_cancel *cancel;
  waiter w[4];
  int status;

  start();
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, client), 0);
  for (int i = 0; i < 4; i++)
    waiter_start(&w[i], keep_busy, cancel);
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&client->mutex); /* any thread may hold it at a fork */
    pid_t child = fork();

    if (child == 0)
      live_in_child();
    pthread_mutex_unlock(&client->mutex);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
  }
  lk_sync_cancel_set(cancel);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(waiter_end(&w[i]), 0);
  lk_sync_cancel_free(cancel);
  stop();
}
END_TEST

SUITE("without_server", a_call_ends_at_its_deadline,
      try_without_options_does_not_wait_for_a_connection,
      calls_without_options_have_those_of_the_client,
      options_of_one_call_are_no_defaults,
      requests_that_fail_offline_do_not_wait,
      cancelled_request_that_waits_is_not_sent_any_more,
      last_error_explains_a_deadline, list_of_servers_can_be_changed,
      state_can_be_awaited, end_of_a_closing_client_can_be_awaited,
      without_a_connection_there_is_a_server_and_no_peer,
      cancel_ends_all_calls_that_have_it, a_signal_handler_may_cancel,
      closing_ends_all_calls, freeing_ends_all_calls,
      free_waits_until_all_calls_have_returned,
      call_that_a_free_overtakes_leaves_no_watch,
      freeing_a_lock_ends_calls_that_wait_for_it,
      freeing_a_subscription_ends_calls_that_wait_for_it,
      a_thread_is_not_cancelled_in_a_call, invalid_arguments_are_refused,
      multilock_has_one_to_a_thousand_members,
      lock_that_is_not_held_has_no_token_or_deadline,
      waiting_in_a_callback_is_refused, state_changes_are_reported,
      without_memory_calls_are_refused,
      forked_child_holds_nothing_and_does_not_hang)
