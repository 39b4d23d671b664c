/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Grants, and waits that end without one. */

/* Have the rival hold its lock. Returns the number of nodes that it has then.
 */
static size_t hold_by_rival(void)
{
  fixture_hold(&fx.rival);
  return fixture_count_nodes();
}

/* Expect that the own client, which has given up, has left neither nodes nor
   watches. `nodes`: how many nodes the rival has. */
static void expect_nothing_left(size_t nodes)
{
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(fixture_count_nodes(), nodes);
  ck_assert_uint_eq(model_watches(fx.own_client.link), 0);
  ck_assert_uint_eq(lk_lease_pending_cleanups(fx.own_client.link->client), 0);
  ck_assert_str_eq(fx.own_client.left_behind, "");
}

/* ---- grants -------------------------------------------------------------- */

SCENARIO(holder_knows_its_node_its_token_and_its_deadline)
{
  fixture_begin(k);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_token(fx.own.lock), 0);
  ck_assert_ptr_null(lk_lock_node(fx.own.lock));
  ck_assert_int_eq(lk_lock_deadline(fx.own.lock), INT64_MIN);
  ck_assert(!lk_lock_ok(fx.own.lock));
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_ACQUIRING);
  model_turn(&fx.server);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_HELD);
  ck_assert_ptr_nonnull(model_node(&fx.server, lk_lock_node(fx.own.lock)));
  ck_assert_uint_eq(lk_lock_token(fx.own.lock),
                    fixture_newest_czxid(&fx.own_client));
  /* The session timeout less 1 percent and 10 ms for differing clocks. */
  ck_assert_int_eq(lk_lock_deadline(fx.own.lock),
                   fx.server.now + T - T / 100 - 10);
  ck_assert_uint_eq(lk_lock_count(fx.own.lock), 1);
  locker_release(&fx.own);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_token(fx.own.lock), 0);
  ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
  fixture_end();
}

SCENARIO(waiter_is_granted_when_the_holder_releases)
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  uint64_t token = lk_lock_token(fx.rival.lock);

  model_run(&fx.server, 2 * T);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  ck_assert(!lk_lock_ok(fx.own.lock));
  ck_assert(locker_check_events(&fx.own, ""));
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert(lk_lock_ok(fx.own.lock));
  ck_assert_uint_gt(lk_lock_token(fx.own.lock), token);
  locker_request(&fx.rival); /* now the rival waits for the own client */
  ck_assert_int_eq(fx.rival.acquired, NOT_YET);
  fixture_release(&fx.own);
  ck_assert_int_eq(fx.rival.acquired, 0);
  fixture_end();
}

enum { CROWD = 6 };

SCENARIO(waiters_are_granted_in_the_order_of_their_requests)
{
  locker crowd[CROWD];

  fixture_begin(k);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  fixture_hold(&fx.rival);
  for (int i = 0; i < CROWD; i++) {
    ck_assert(fixture_try_make(
        &crowd[i], i % 2 == 0 ? &fx.own_client : &fx.rival_client, &c));
    locker_request(&crowd[i]);
    ck_assert_int_eq(crowd[i].acquired, NOT_YET);
    /* Another lock of the client that holds is not held. */
    ck_assert_int_eq(lk_lock_release(crowd[i].lock, NULL, NULL),
                     LK_ERR_NOT_HELD);
  }
  fixture_release(&fx.rival);
  for (int i = 0; i < CROWD; i++) {
    ck_assert_int_eq(crowd[i].acquired, 0);
    for (int j = i + 1; j < CROWD; j++)
      ck_assert_int_eq(crowd[j].acquired, NOT_YET);
    fixture_release(&crowd[i]);
  }
  for (int i = 0; i < CROWD; i++)
    locker_free(&crowd[i]);
  fixture_end();
}

/* ---- tries and timeouts -------------------------------------------------- */

SCENARIO(try_of_a_held_lock_is_busy_and_leaves_nothing)
{
  fixture_begin(k);
  size_t nodes = hold_by_rival();

  ck_assert_int_eq(locker_try(&fx.own), 0);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_BUSY);
  ck_assert_str_eq(fx.own_client.link->log, k->try);
  ck_assert(locker_check_events(&fx.own, ""));
  expect_nothing_left(nodes);
  ck_assert(lk_lock_ok(fx.rival.lock));
  fixture_release(&fx.rival);
  ck_assert_int_eq(locker_try(&fx.own), 0);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, 0);
  fixture_end();
}

SCENARIO(try_without_a_connection_is_refused)
{
  fixture_begin(k);
  fixture_break_connection(&fx.own_client);
  fx.own_client.link->log[0] = '\0';
  ck_assert_int_eq(locker_try(&fx.own), LK_ERR_NOT_CONNECTED);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  fixture_reconnect();
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  expect_nothing_left(0);
  ck_assert_int_eq(locker_try(&fx.own), 0);
  model_turn(&fx.server);
  ck_assert_int_eq(fx.own.acquired, 0);
  /* The try is over: the holder depends on the lease alone. */
  fixture_break_connection(&fx.own_client);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_HELD);
  ck_assert_int_eq(locker_try(&fx.own), k->reentrant ? 0 : LK_ERR_DEADLOCK);
  fixture_reconnect();
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_HELD);
  fixture_end();
}

SCENARIO(try_until_a_deadline_waits_for_a_connection_alone)
{
  fixture_begin(k);
  size_t nodes = hold_by_rival();

  fixture_break_connection(&fx.own_client);
  ck_assert_int_eq(locker_try_with_next_connection(&fx.own), 0);
  model_run(&fx.server, T / 8);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  fixture_reconnect();
  ck_assert_int_eq(fx.own.acquired, LK_ERR_BUSY);
  expect_nothing_left(nodes);
  fixture_end();
}

SCENARIO(timeout_of_0_has_passed)
{
  fixture_begin(k);
  ck_assert_int_eq(locker_acquire(&fx.own, 0), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
  fixture_hold(&fx.own);
  ck_assert_int_eq(locker_acquire(&fx.own, 0),
                   k->reentrant ? 0 : LK_ERR_DEADLOCK);
  model_turn(&fx.server);
  fixture_end();
}

SCENARIO(timeout_ends_the_wait_and_leaves_nothing)
{
  locker second; /* in the queue behind the own lock */

  fixture_begin(k);
  size_t nodes = hold_by_rival();
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  ck_assert_int_eq(locker_acquire(&fx.own, 300), 0);
  model_turn(&fx.server);
  ck_assert(fixture_try_make(&second, &fx.rival_client, &c));
  ck_assert_int_eq(locker_acquire(&second, 200), 0);
  model_run(&fx.server, 300);
  ck_assert_int_eq(second.acquired, LK_ERR_DEADLINE);
  locker_free(&second);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  fx.own_client.link->log[0] = '\0';
  model_run(&fx.server, 1);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_DEADLINE);
  ck_assert_str_eq(fx.own_client.link->log, k->give_up);
  expect_nothing_left(nodes);
  fixture_release(&fx.rival);
  model_run(&fx.server, T);
  expect_nothing_left(0);
  fixture_end();
}

SCENARIO(timeout_ends_the_wait_without_a_connection)
{
  fixture_begin(k);
  size_t nodes = hold_by_rival();

  ck_assert_int_eq(locker_acquire(&fx.own, 300), 0);
  model_turn(&fx.server);
  fx.own_client.link->frozen = true;
  model_drop(fx.own_client.link);
  model_run(&fx.server, 300);
  ck_assert_int_eq(lk_client_state(fx.own_client.link->client),
                   LK_STATE_SUSPENDED);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  model_run(&fx.server, 1);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_DEADLINE);
  fx.own_client.link->frozen = false;
  model_run(&fx.server, T / 4);
  expect_nothing_left(nodes);
  fixture_end();
}

SCENARIO(granted_lock_has_no_timeout)
{
  fixture_begin(k);
  ck_assert_int_eq(locker_acquire(&fx.own, 300), 0);
  model_run(&fx.server, 1000);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_HELD);
  ck_assert(locker_check_events(&fx.own, ""));
  fixture_end();
}

/* ---- cancels ------------------------------------------------------------- */

SCENARIO(cancel_ends_the_acquire_before_it_returns)
{
  fixture_begin(k);
  size_t nodes = hold_by_rival();

  locker_request(&fx.own);
  lk_lock_cancel(fx.own.lock);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CANCELLED);
  lk_lock_cancel(fx.own.lock); /* has no effect without an acquire */
  model_turn(&fx.server);
  expect_nothing_left(nodes);
  fixture_release(&fx.rival);
  /* An acquire of the free lock is cancelled before its request is sent. */
  ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
  lk_lock_cancel(fx.own.lock);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CANCELLED);
  model_turn(&fx.server);
  expect_nothing_left(0);
  fixture_hold(&fx.rival);
  fixture_end();
}

/* Cancels an acquire after `bytes` of the replies have arrived. With `breaks`,
   the connection breaks, too. false: the replies have fewer bytes. */
static bool cancel_after_bytes(const kind *k, size_t bytes, bool breaks)
{
  fixture_begin(k);
  hold_by_rival();
  fx.own_client.link->allow = bytes;
  locker_request(&fx.own);
  bool has_more_bytes = fx.own_client.link->allow == 0;

  lk_lock_cancel(fx.own.lock);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_CANCELLED);
  if (breaks)
    model_drop(fx.own_client.link);
  fx.own_client.link->allow = SIZE_MAX;
  fixture_release(&fx.rival);
  model_run(&fx.server, T / 4);
  expect_nothing_left(0);
  fixture_end();
  return has_more_bytes;
}

SCENARIO(cancel_between_any_two_replies_leaves_nothing)
{
  for (int i = 0; i < 2; i++) {
    const bool breaks = i == 1;
    size_t bytes = 0;

    while (cancel_after_bytes(k, bytes, breaks))
      bytes += 19;                /* less than the length of a reply */
    ck_assert_uint_gt(bytes, 60); /* there was more than one reply */
  }
}

const scenario waiting_scenarios[] = {
    &holder_knows_its_node_its_token_and_its_deadline,
    &waiter_is_granted_when_the_holder_releases,
    &waiters_are_granted_in_the_order_of_their_requests,
    &try_of_a_held_lock_is_busy_and_leaves_nothing,
    &try_without_a_connection_is_refused,
    &try_until_a_deadline_waits_for_a_connection_alone,
    &timeout_of_0_has_passed,
    &timeout_ends_the_wait_and_leaves_nothing,
    &timeout_ends_the_wait_without_a_connection,
    &granted_lock_has_no_timeout,
    &cancel_ends_the_acquire_before_it_returns,
    &cancel_between_any_two_replies_leaves_nothing,
    NULL};
