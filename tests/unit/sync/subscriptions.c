/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Subscriptions of the blocking interface with a model server on loopback. */

#include <string.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "unit/fake/loopback.h"

static loopback zk;
static lk_sync_client *client;
static lk_sync_subscription *subscription;

static const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 10000};
static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 30};

static void start(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  loopback_start(&zk);
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
}

static void stop(void)
{
  lk_sync_subscription_free(subscription);
  lk_sync_client_free(client);
  loopback_stop(&zk);
}

static void create(const char *path)
{
  loopback_lock(&zk);
  model_create(&zk.server, path);
  loopback_unlock(&zk);
}

static void set(const char *path, const char *data)
{
  loopback_lock(&zk);
  model_set(&zk.server, path, data);
  loopback_unlock(&zk);
}

/* Waits until the client's thread has read all that the server sent before. */
static void settle(void)
{
  ck_assert_int_eq(lk_sync_server_sync(client, "/", &soon), 0);
  ck_assert_int_eq(lk_sync_exists(client, NULL, "/", &soon), 0);
}

static lk_sync_result *next(int expected)
{
  lk_sync_result *r = NULL;

  ck_assert_int_eq(lk_sync_subscription_next(subscription, &r, &soon),
                   expected);
  ck_assert_int_eq(r != NULL, expected == 0);
  return r;
}

static void assert_no_news(void)
{
  lk_sync_result *r = NULL;

  ck_assert_int_eq(lk_sync_subscription_next(subscription, &r, &brief),
                   LK_ERR_DEADLINE);
  ck_assert_ptr_null(r);
}

/* ---- reports ------------------------------------------------------------- */

START_TEST(names_of_children_are_delivered_after_each_change)
{
  start();
  ck_assert_int_eq(
      lk_sync_subscribe_children(&subscription, client, "/t", NULL), 0);
  ck_assert_ptr_null(next(LK_ERR_NO_NODE));
  create("/t");
  lk_sync_result *r = next(0);

  ck_assert_uint_eq(r->count, 0);
  lk_sync_result_free(r);
  create("/t/a");
  r = next(0);
  ck_assert_uint_eq(r->count, 1);
  ck_assert_uint_eq(r->names[0].len, 1);
  ck_assert_str_eq((const char *)r->names[0].at, "a");
  ck_assert_int_eq(r->stat.num_children, 1);
  lk_sync_result_free(r);
  assert_no_news();
  stop();
}
END_TEST

START_TEST(only_the_newest_data_is_kept_for_a_caller)
{
  start();
  create("/t");
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/t", NULL),
                   0);
  lk_sync_result_free(next(0));
  set("/t", "one");
  settle();
  set("/t", "three");
  settle();
  lk_sync_result *r = next(0);

  ck_assert_uint_eq(r->data.len, 5);
  ck_assert_str_eq((const char *)r->data.at, "three");
  ck_assert_int_eq(r->stat.version, 2);
  lk_sync_result_free(r);
  assert_no_news();
  stop();
}
END_TEST

/* ---- several callers ----------------------------------------------------- */

static int take_length(void *out)
{
  lk_sync_result *r = NULL;
  int err = lk_sync_subscription_next(subscription, &r, &soon);

  if (err == 0)
    *(size_t *)out = r->data.len;
  lk_sync_result_free(r);
  return err;
}

START_TEST(caller_that_has_waited_longest_gets_the_state)
{
  size_t lengths[2] = {0, 0};
  waiter w[2];

  start();
  create("/t");
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/t", NULL),
                   0);
  lk_sync_result_free(next(0));
  for (unsigned i = 0; i < 2; i++) {
    waiter_start(&w[i], take_length, &lengths[i]);
    waiters_inside(client, i + 1);
    settle();
  }
  set("/t", "one");
  ck_assert_int_eq(waiter_end(&w[0]), 0);
  ck_assert_uint_eq(lengths[0], 3);
  set("/t", "three");
  ck_assert_int_eq(waiter_end(&w[1]), 0);
  ck_assert_uint_eq(lengths[1], 5);
  stop();
}
END_TEST

START_TEST(call_whose_deadline_has_passed_takes_no_result)
{
  start();
  create("/t");
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/t", NULL),
                   0);
  lk_sync_result_free(next(0));
  assert_no_news();
  set("/t", "one");
  lk_sync_result *r = next(0);

  ck_assert_uint_eq(r->data.len, 3);
  lk_sync_result_free(r);
  stop();
}
END_TEST

START_TEST(every_caller_learns_that_the_client_is_closed)
{
  size_t length;
  waiter w;

  start();
  create("/t");
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/t", NULL),
                   0);
  lk_sync_result_free(next(0));
  waiter_start(&w, take_length, &length);
  waiters_inside(client, 1);
  ck_assert_int_eq(lk_sync_client_close(client), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_CLOSED);
  for (int i = 0; i < 2; i++)
    ck_assert_ptr_null(next(LK_ERR_CLOSED));
  stop();
}
END_TEST

SUITE("subscriptions", names_of_children_are_delivered_after_each_change,
      only_the_newest_data_is_kept_for_a_caller,
      caller_that_has_waited_longest_gets_the_state,
      call_whose_deadline_has_passed_takes_no_result,
      every_caller_learns_that_the_client_is_closed)
