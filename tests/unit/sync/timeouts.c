/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The timeout and the deadline of each call of the blocking interface, if no
 * server answers. tests/unit/api/timeouts.c has those of the callback
 * interface. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/every_call.h"
#include "support/suite.h"
#include "support/waiters.h"
#include "unit/fake/sockets.h"

static every_object objects;

enum { MOST_CALLS = 64 };
static const every_call *calls[MOST_CALLS]; /* those that wait */
static size_t ncalls;

/* On a busy machine a call may begin only after a brief timeout: then it ends
 * with LK_ERR_DEADLINE although it does not wait, so it is made once more. */
static bool waits(const every_call *c)
{
  static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 1};
  static const lk_sync_call longer = {.size = sizeof longer, .timeout_ms = 50};

  objects.call = &brief;
  if (c->call(&objects) != LK_ERR_DEADLINE)
    return false;
  objects.call = &longer;
  return c->call(&objects) == LK_ERR_DEADLINE;
}

static void start(void)
{
  static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 1};
  char hosts[64];

  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  every_object_make(&objects, hosts, &brief);
  ncalls = 0;
  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    if (strcmp(c->name, "client_close") != 0 && waits(c))
      calls[ncalls++] = c;
  }
  ck_assert_uint_gt(ncalls, 0);
}

static void stop(void)
{
  every_object_free(&objects);
}

static int make_call(void *arg)
{
  const every_call *c = arg;

  return c->call(&objects);
}

/* Makes all calls at the same time; each must end with `expected`. If that is
 * LK_ERR_CANCELLED, the calls have no limit, and the test cancels them. */
static void all_end_with(int expected, int64_t timeout_ms, int64_t deadline_ms)
{
  const lk_sync_call call = {.size = sizeof call,
                             .timeout_ms = timeout_ms,
                             .deadline_ms = deadline_ms,
                             .cancel = objects.cancel};
  waiter w[MOST_CALLS];

  objects.call = &call;
  lk_sync_cancel_clear(objects.cancel);
  for (size_t i = 0; i < ncalls; i++)
    waiter_start(&w[i], make_call, (void *)(uintptr_t)calls[i]);
  if (expected == LK_ERR_CANCELLED) {
    waiters_inside(objects.client, ncalls);
    usleep(20000);
    lk_sync_cancel_set(objects.cancel);
  }
  for (size_t i = 0; i < ncalls; i++) {
    int err = waiter_end(&w[i]);

    ck_assert_msg(err == expected, "%s, timeout %lld, deadline %lld: %s",
                  calls[i]->name, (long long)timeout_ms, (long long)deadline_ms,
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
  int64_t now = lk_sync_client_clock(objects.client);

  all_end_with_deadline(LK_ERR_DEADLINE, 1);
  all_end_with_deadline(LK_ERR_DEADLINE, -2);
  all_end_with_deadline(LK_ERR_DEADLINE, INT64_MIN);
  all_end_with_deadline(LK_ERR_DEADLINE, now - 1);
  all_end_with_deadline(LK_ERR_DEADLINE, now);
  all_end_with_deadline(LK_ERR_DEADLINE,
                        lk_sync_client_clock(objects.client) + 1);
  all_end_with(LK_ERR_DEADLINE, 60000,
               lk_sync_client_clock(objects.client) + 20);
  all_end_with(LK_ERR_DEADLINE, 20,
               lk_sync_client_clock(objects.client) + 60000);
  all_end_with_deadline(LK_ERR_CANCELLED, LK_NO_LIMIT);
  all_end_with_deadline(LK_ERR_CANCELLED, INT64_MAX - 1);
  all_end_with_deadline(LK_ERR_CANCELLED, INT64_MAX);
  stop();
}
END_TEST

SUITE("timeouts", blocking_call_ends_at_its_timeout_unless_that_is_no_limit,
      blocking_call_ends_at_its_deadline_unless_that_is_no_limit)
