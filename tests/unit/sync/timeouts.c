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
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

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

static int do_create_with_parents(void *call)
{
  return lk_sync_create_with_parents(client, NULL, "/x", lk_text(""), NULL, 0,
                                     NULL, call);
}

static int do_delete_recursive(void *call)
{
  return lk_sync_delete_recursive(client, NULL, "/x", call);
}

static int do_set_reliable(void *call)
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
             {"create_with_parents", do_create_with_parents},
             {"delete_recursive", do_delete_recursive},
             {"set_reliable", do_set_reliable},
             {"lock_acquire", do_acquire},
             {"lock_try", do_try},
             {"lock_acquire of a side", do_side},
             {"subscription_next", do_next}};

enum { CALLS = sizeof calls / sizeof calls[0] };

/* Makes all calls at the same time; each must end with `expected`. If that is
 * LK_ERR_CANCELLED, the calls have no limit, and the test cancels them. */
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

static void all_end_with_timeout(int expected, int64_t timeout_ms)
{
  const int64_t no_deadline_ms = 0;

  all_end_with(expected, timeout_ms, no_deadline_ms);
}

static void all_end_with_deadline(int expected, int64_t deadline_ms)
{
  const int64_t no_timeout_ms = 0;

  all_end_with(expected, no_timeout_ms, deadline_ms);
}

START_TEST(blocking_call_ends_at_its_timeout_unless_that_is_no_limit)
{
  start();
  all_end_with_timeout(LK_ERR_DEADLINE, -2);
  all_end_with_timeout(LK_ERR_DEADLINE, INT64_MIN);
  all_end_with_timeout(LK_ERR_DEADLINE, 1);
  all_end_with_timeout(LK_ERR_DEADLINE, 20);
  all_end_with_timeout(LK_ERR_CANCELLED, 0);
  all_end_with_timeout(LK_ERR_CANCELLED, LK_NO_LIMIT);
  all_end_with_timeout(LK_ERR_CANCELLED, INT64_MAX - 1);
  all_end_with_timeout(LK_ERR_CANCELLED, INT64_MAX);
  stop();
}
END_TEST

START_TEST(blocking_call_ends_at_its_deadline_unless_that_is_no_limit)
{
  start();
  int64_t now = lk_sync_client_clock(client);

  all_end_with_deadline(LK_ERR_DEADLINE, 1);
  all_end_with_deadline(LK_ERR_DEADLINE, -2);
  all_end_with_deadline(LK_ERR_DEADLINE, INT64_MIN);
  all_end_with_deadline(LK_ERR_DEADLINE, now - 1);
  all_end_with_deadline(LK_ERR_DEADLINE, now);
  all_end_with_deadline(LK_ERR_DEADLINE, lk_sync_client_clock(client) + 1);
  all_end_with(LK_ERR_DEADLINE, 60000, lk_sync_client_clock(client) + 20);
  all_end_with(LK_ERR_DEADLINE, 20, lk_sync_client_clock(client) + 60000);
  all_end_with_deadline(LK_ERR_CANCELLED, LK_NO_LIMIT);
  all_end_with_deadline(LK_ERR_CANCELLED, INT64_MAX - 1);
  all_end_with_deadline(LK_ERR_CANCELLED, INT64_MAX);
  stop();
}
END_TEST

SUITE("timeouts", blocking_call_ends_at_its_timeout_unless_that_is_no_limit,
      blocking_call_ends_at_its_deadline_unless_that_is_no_limit)
