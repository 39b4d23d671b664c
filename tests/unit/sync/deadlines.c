/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Deadlines of blocking calls: with a clock that advances at each reading, and
 * with a server that stops answering. */

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "proto/engine/client.h"
#include "proto/wire/opcode.h"
#include "support/suite.h"
#include "support/waiters.h"
#include "sync/call.h"
#include "unit/fake/loopback.h"
#include "unit/fake/sockets.h"

static lk_sync_client *client;
static lk_sync_cancel *cancel;

static void start(void)
{
  char hosts[64];
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, client), 0);
}

static void stop(void)
{
  lk_sync_cancel_free(cancel);
  lk_sync_client_free(client);
}

/* ---- a clock of the test ------------------------------------------------- */

static struct {
  lk_hooks real;            /**< the client's own hooks */
  int64_t now_ms;           /**< the next reading of the clock */
  atomic_bool is_being_set; /**< set_clock_before_deadline() waits for a call */
} moving;

/* The clock advances by a millisecond at each reading. */
static int64_t read_moving_clock(void *arg)
{
  (void)arg;
  return moving.now_ms++;
}

/* Runs on the client's thread: waits until a call is queued for it, and then
 * sets the clock to `left_ms` before the deadline of that call. */
static void set_clock_before_deadline(lk_client *c, void *left_ms)
{
  bool posted = false;

  moving.is_being_set = true;
  while (!posted) {
    usleep(200);
    pthread_mutex_lock(&client->mutex);
    posted = !lk__list_empty(&client->tasks);
    if (posted) {
      lk_task *t = LK_OWNER(client->tasks.next, lk_task, link);

      moving.now_ms = LK_OWNER(t, lk_blocking_call, task)->deadline_ms -
                      *(int64_t *)left_ms;
    }
    pthread_mutex_unlock(&client->mutex);
  }
  moving.real = c->hooks;
  c->hooks.now = read_moving_clock;
}

static void set_real_clock(lk_client *c, void *arg)
{
  (void)arg;
  c->hooks = moving.real;
}

/* ---- the calls ----------------------------------------------------------- */

static int call_get(void *call)
{
  return lk_sync_get(client, NULL, "/x", call);
}

static int run_set_clock(void *left_ms)
{
  return lk_sync_client_run_on_thread(client, set_clock_before_deadline,
                                      left_ms);
}

/* The result of a call that the client's thread begins `left_ms` before its
 * deadline. If it has not returned after `limit_ms`, the test cancels it, and
 * the result is LK_ERR_CANCELLED. */
static int result_of_call(int64_t left_ms, int limit_ms)
{
  lk_sync_call call = {
      .size = sizeof call, .timeout_ms = 300, .cancel = cancel};
  bool inside = true;
  waiter clock, w;

  moving.is_being_set = false;
  waiter_start(&clock, run_set_clock, &left_ms);
  /* Otherwise the client's thread could take both tasks from the list before it
     waits for the second one. */
  while (!moving.is_being_set)
    usleep(200);
  waiter_start(&w, call_get, &call);
  ck_assert_int_eq(waiter_end(&clock), 0);
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, set_real_clock, NULL),
                   0);
  for (int ms = 0; inside && ms < limit_ms; ms++) {
    usleep(1000);
    pthread_mutex_lock(&client->mutex);
    inside = client->calls_inside > 0;
    pthread_mutex_unlock(&client->mutex);
  }
  lk_sync_cancel_set(cancel); /* without effect if the call has ended */
  int err = waiter_end(&w);

  lk_sync_cancel_clear(cancel);
  return err;
}

START_TEST(call_that_begins_just_before_its_deadline_ends_at_it)
{
  start();
  for (int64_t left_ms = 0; left_ms < 6; left_ms++)
    ck_assert_int_eq(result_of_call(left_ms, 5000), LK_ERR_DEADLINE);
  stop();
}
END_TEST

/* ---- a server that stops in the middle ----------------------------------- */

/* Refuses the delete of the first child of /t, and answers nothing from then
 * on. */
static void refuse_delete_and_freeze(model_server *s, model_link *l, int32_t op,
                                     const char *path)
{
  (void)s;
  if (op != LK_OPCODE_DELETE || strcmp(path, "/t") == 0)
    return;
  l->answer_at = l->requests; /* answer this request */
  l->answer_err = LK_ERR_NO_AUTH;
  l->frozen = true;
}

/* The deadline ends the outstanding deletes, but the result is the refusal that
 * came before it. */
START_TEST(refusal_before_the_deadline_is_the_result)
{
  static loopback zk;
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  const lk_sync_call call = {.size = sizeof call, .timeout_ms = 400};
  size_t deleted;

  loopback_start(&zk);
  model_create(&zk.server, "/t");
  model_create(&zk.server, "/t/a");
  model_create(&zk.server, "/t/b");
  zk.server.before = refuse_delete_and_freeze;
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  ck_assert_int_eq(lk_sync_delete_recursive(client, &deleted, "/t", &call),
                   LK_ERR_NO_AUTH);
  ck_assert_uint_eq(deleted, 0);
  lk_sync_client_free(client);
  loopback_stop(&zk);
}
END_TEST

SUITE("deadlines", call_that_begins_just_before_its_deadline_ends_at_it,
      refusal_before_the_deadline_is_the_result)
