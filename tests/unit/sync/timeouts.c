/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The timeout and the deadline of each call of the blocking interface, if no
 * server answers. tests/unit/api/timeouts.c has those of the callback
 * interface. */

#include <stdio.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "unit/fake/sockets.h"

static lk_sync_client *client;
static lk_sync_lock *lock;
static lk_sync_rwlock *rw;
static lk_sync_subscription *subscription;
static lk_sync_cancel *cancel;

static void start(void)
{
  char hosts[64];
  lk_client_config how = {.size = sizeof how, .hosts = hosts};
  lk_sync_config config = {.size = sizeof config, .client = &how};

  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, client), 0);
  ck_assert_int_eq(lk_sync_lock_new(&lock, client, "/lock", NULL), 0);
  ck_assert_int_eq(lk_sync_rwlock_new(&rw, client, "/rw", NULL), 0);
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/x", NULL),
                   0);
}

static void stop(void)
{
  lk_sync_subscription_free(subscription);
  lk_sync_rwlock_free(rw);
  lk_sync_lock_free(lock);
  lk_sync_cancel_free(cancel);
  lk_sync_client_free(client);
}

static int do_get(void *call)
{
  return lk_sync_get(client, NULL, "/x", call);
}

static int do_create(void *call)
{
  return lk_sync_create(client, NULL, "/x", lk_text(""), NULL, 0, call);
}

static int do_auth(void *call)
{
  return lk_sync_add_auth(client, "digest", lk_text("bob:secret"), call);
}

static int do_create_deep(void *call)
{
  return lk_sync_create_with_parents(client, NULL, "/x", lk_text(""), NULL, 0,
                                     NULL, call);
}

static int do_delete_deep(void *call)
{
  return lk_sync_delete_recursive(client, NULL, "/x", call);
}

static int do_set_settled(void *call)
{
  return lk_sync_set_reliable(client, NULL, "/x", lk_text(""), -1, false, call);
}

static int do_acquire(void *call)
{
  return lk_sync_lock_acquire(lock, call);
}

static int do_try(void *call)
{
  return lk_sync_lock_try(lock, call);
}

static int do_side(void *call)
{
  return lk_sync_lock_acquire(lk_sync_rwlock_read_side(rw), call);
}

static int do_next(void *call)
{
  return lk_sync_subscription_next(subscription, NULL, call);
}

static const struct {
  const char *name;
  int (*what)(void *call);
} calls[] = {{"get", do_get},
             {"create", do_create},
             {"add_auth", do_auth},
             {"create_deep", do_create_deep},
             {"delete_deep", do_delete_deep},
             {"set_settled", do_set_settled},
             {"lock_acquire", do_acquire},
             {"lock_try", do_try},
             {"lock_acquire of a side", do_side},
             {"subscription_next", do_next}};

enum { CALLS = sizeof calls / sizeof calls[0] };

/* Makes all calls at the same time; each must end with `expected`. */
static void all_end_with(int expected, int64_t timeout_ms, int64_t deadline_ms)
{
  lk_sync_call call = {.size = sizeof call,
                       .timeout_ms = timeout_ms,
                       .deadline_ms = deadline_ms,
                       .cancel = cancel};
  waiter w[CALLS];

  lk_sync_cancel_clear(cancel);
  for (size_t i = 0; i < CALLS; i++)
    waiter_start(&w[i], calls[i].what, &call);
  if (expected == LK_ERR_CANCELLED) {
    waiters_inside(client, CALLS);
    usleep(20000);
    lk_sync_cancel_set(cancel);
  }
  for (size_t i = 0; i < CALLS; i++) {
    int err = waiter_end(&w[i]);

    ck_assert_msg(err == expected, "%s, timeout %lld, deadline %lld: %s",
                  calls[i].name, (long long)timeout_ms, (long long)deadline_ms,
                  lk_error_text(err));
  }
}

START_TEST(timeout_of_a_blocking_call)
{
  start();
  all_end_with(LK_ERR_DEADLINE, -2, 0);
  all_end_with(LK_ERR_DEADLINE, INT64_MIN, 0);
  all_end_with(LK_ERR_DEADLINE, 1, 0);
  all_end_with(LK_ERR_DEADLINE, 20, 0);
  all_end_with(LK_ERR_CANCELLED, 0, 0);
  all_end_with(LK_ERR_CANCELLED, LK_NO_LIMIT, 0);
  all_end_with(LK_ERR_CANCELLED, INT64_MAX - 1, 0);
  all_end_with(LK_ERR_CANCELLED, INT64_MAX, 0);
  stop();
}
END_TEST

START_TEST(deadline_of_a_blocking_call)
{
  start();
  int64_t now = lk_sync_client_clock(client);

  all_end_with(LK_ERR_DEADLINE, 0, 1);
  all_end_with(LK_ERR_DEADLINE, 0, -2);
  all_end_with(LK_ERR_DEADLINE, 0, INT64_MIN);
  all_end_with(LK_ERR_DEADLINE, 0, now - 1);
  all_end_with(LK_ERR_DEADLINE, 0, now);
  all_end_with(LK_ERR_DEADLINE, 0, lk_sync_client_clock(client) + 1);
  all_end_with(LK_ERR_DEADLINE, 60000, lk_sync_client_clock(client) + 20);
  all_end_with(LK_ERR_DEADLINE, 20, lk_sync_client_clock(client) + 60000);
  all_end_with(LK_ERR_CANCELLED, 0, LK_NO_LIMIT);
  all_end_with(LK_ERR_CANCELLED, 0, INT64_MAX - 1);
  all_end_with(LK_ERR_CANCELLED, 0, INT64_MAX);
  stop();
}
END_TEST

SUITE("timeouts", timeout_of_a_blocking_call, deadline_of_a_blocking_call)
