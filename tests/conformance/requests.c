/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Which requests an acquire sends, and in how many writes. */

/* Expects exactly these requests since the log was last empty. */
static void expect_log(const test_client *p, const char *requests)
{
  ck_assert_str_eq(p->link->log, requests);
  p->link->log[0] = '\0';
}

SCENARIO(free_lock_is_acquired_with_these_requests)
{
  fixture_begin(k);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  ck_assert_int_eq(fx.own.acquired, NOT_YET); /* it is only queued */
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, 0);
  expect_log(&fx.own_client, k->acquire);
  ck_assert_uint_eq(fixture_count_nodes(), k->held_nodes);
  model_run(&fx.server, T / 4 - 1); /* no heartbeat before that */
  fixture_release(&fx.own);
  model_run(&fx.server, T);
  expect_log(&fx.own_client, k->release);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  fixture_end();
}

SCENARIO(missing_directories_are_created_with_these_requests)
{
  fixture_begin_empty(k);
  test_client_init(&fx.own_client, &fx.server, NULL);
  test_client_init(&fx.rival_client, &fx.server, NULL);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  ck_assert(fixture_try_make(&fx.own, &fx.own_client, &c));
  ck_assert(fixture_try_make(&fx.rival, &fx.rival_client, &c));
  model_turn(&fx.server);
  fixture_clear_logs();
  fixture_hold(&fx.own);
  expect_log(&fx.own_client, k->cold);
  fixture_release(&fx.own);
  for (size_t i = 0; k->dirs[i] != NULL; i++)
    ck_assert_int_eq(model_node(&fx.server, k->dirs[i])->container,
                     k->containers);
  fixture_hold(&fx.rival); /* uses the directories that were created */
  fixture_end();
}

SCENARIO(held_lock_is_waited_for_and_granted_with_these_requests)
{
  fixture_begin(k);
  fixture_hold(&fx.rival);
  locker_request(&fx.own);
  expect_log(&fx.own_client, k->wait);
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
  expect_log(&fx.own_client, k->grant);
  fixture_end();
}

/* Both clients request the lock at the same time, and each again with its
   release. */
SCENARIO(alternating_holders_send_these_requests)
{
  fixture_begin(k);
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  ck_assert_int_eq(locker_acquire(&fx.rival, FOREVER), 0);
  model_turn(&fx.server);
  for (int i = 0; i < 10; i++) {
    const bool own_holds = fx.own.acquired == 0;
    locker *holder = own_holds ? &fx.own : &fx.rival;
    locker *waiter = own_holds ? &fx.rival : &fx.own;

    ck_assert_int_eq(holder->acquired, 0);
    ck_assert_int_eq(waiter->acquired, NOT_YET);
    ck_assert(lk_lock_ok(holder->lock) && !lk_lock_ok(waiter->lock));
    fixture_clear_logs();
    locker_release(holder);
    ck_assert_int_eq(locker_acquire(holder, FOREVER), 0);
    model_turn(&fx.server);
    ck_assert_int_eq(holder->released, 0);
    if (i < 2) /* after failures, a semaphore requests its permits later */
      ck_assert_str_eq(fx.own_client.link->log, own_holds ? k->turn : k->grant);
  }
  fixture_end();
}

const scenario request_scenarios[] = {
    &free_lock_is_acquired_with_these_requests,
    &missing_directories_are_created_with_these_requests,
    &held_lock_is_waited_for_and_granted_with_these_requests,
    &alternating_holders_send_these_requests, NULL};
