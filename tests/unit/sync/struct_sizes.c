/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/sync.h>
#include <stdio.h>

#include "support/suite.h"
#include "unit/api/arguments.h"
#include "unit/api/sized.h"

/* Structs of older and newer programs, and those whose size was forgotten, of
 * the blocking interface. The others: tests/unit/api/struct_sizes.c. No server
 * replies, so a call that was accepted ends at its deadline. */

static lk_sync_client *test_client;
static lk_sync_lock *test_lock;
static lk_sync_subscription *test_subscription;
static lk_sync_candidate *test_candidate;
static lk_sync_membership *test_membership;

#include "tests/unit/sync/sizes_from_headers.h"

static char last_log_line[256]; /* last line of the log */

static void keep_line(void *arg, lk_log_level level, int err, const char *text)
{
  sized_log(arg, level, err, text);
  snprintf(last_log_line, sizeof last_log_line, "%s", text);
}

static void start(void)
{
  lk_client_config c = {
      .size = sizeof c, .hosts = "127.0.0.1:1", .log = keep_line};
  lk_sync_config config = {.size = sizeof config, .client = &c};

  ck_assert_int_eq(lk_sync_client_new(&test_client, &config), 0);
  ck_assert_int_eq(
      lk_sync_lock_new(&test_lock, test_client, "/x", NULL, NULL, NULL), 0);
  ck_assert_int_eq(
      lk_sync_subscribe_data(&test_subscription, test_client, "/x", NULL), 0);
  ck_assert_int_eq(lk_sync_election_new(&test_candidate, test_client, "/e",
                                        LK_LAYOUT_LATCH, NULL, NULL),
                   0);
  ck_assert_int_eq(
      lk_sync_membership_new(&test_membership, test_client, "/g", "a", NULL),
      0);
}

static void stop(void)
{
  lk_sync_membership_free(test_membership);
  lk_sync_candidate_free(test_candidate);
  lk_sync_lock_free(test_lock);
  lk_sync_subscription_free(test_subscription);
  lk_sync_client_free(test_client);
}

START_TEST(structs_may_be_older_or_newer_but_need_a_size)
{
  start();
  for (size_t i = 0; i < sizeof sized_rows / sizeof sized_rows[0]; i++)
    sized_check(&sized_rows[i]);
  stop();
}
END_TEST

static void call_without_size_in_callback(lk_client *c, void *arg)
{
  static const lk_sync_call none = {0};

  (void)c;
  *(int *)arg = lk_sync_get(test_client, NULL, "/x", &none);
  ck_assert_str_eq(last_log_line, "lk_sync_call.size is not set");
}

START_TEST(forgotten_size_is_logged_in_a_callback_too)
{
  int err = 0;

  start();
  ck_assert_int_eq(lk_sync_client_run_on_thread(
                       test_client, call_without_size_in_callback, &err),
                   0);
  ck_assert_int_eq(err, LK_ERR_STATE);
  stop();
}
END_TEST

SUITE("struct_sizes", structs_may_be_older_or_newer_but_need_a_size,
      forgotten_size_is_logged_in_a_callback_too)
