/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Grants, and waits that end without one. */

/* Nodes while the rival holds and nobody else wants the lock. */
static size_t hold_by_rival(void)
{
  stage_hold(&st.rival);
  return stage_nodes();
}

/* The own client has given up: neither its nodes nor its watches are left. */
static void expect_nothing_left(size_t nodes)
{
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(stage_nodes(), nodes);
  ck_assert_uint_eq(model_watches(st.ours.link), 0);
  ck_assert_uint_eq(lk_lease_pending_cleanups(st.ours.link->client), 0);
  ck_assert_str_eq(st.ours.left_behind, "");
}

/* ---- grants -------------------------------------------------------------- */

static uint64_t newest_own_node(void)
{
  int64_t newest = 0;
  const char *path;

  for (size_t i = 0; (path = stage_node_of(&st.ours, i)) != NULL; i++) {
    const sim_node *n = model_node(&st.server, path);

    if (n->stat.czxid > newest)
      newest = n->stat.czxid;
  }
  return (uint64_t)newest;
}

SCENARIO(holder_knows_its_node_its_token_and_its_deadline)
{
  stage_begin(k);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_token(st.own.lock), 0);
  ck_assert_ptr_null(lk_lock_node(st.own.lock));
  ck_assert_int_eq(lk_lock_deadline(st.own.lock), INT64_MIN);
  ck_assert(!lk_lock_ok(st.own.lock));
  ck_assert_int_eq(locker_want(&st.own, -1), 0);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_ACQUIRING);
  model_turn(&st.server);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_HELD);
  ck_assert_ptr_nonnull(model_node(&st.server, lk_lock_node(st.own.lock)));
  ck_assert_uint_eq(lk_lock_token(st.own.lock), newest_own_node());
  ck_assert_int_eq(lk_lock_deadline(st.own.lock),
                   st.server.now + T - T / 100 - 10);
  ck_assert_uint_eq(lk_lock_count(st.own.lock), 1);
  locker_release(&st.own);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
  ck_assert_uint_eq(lk_lock_token(st.own.lock), 0);
  ck_assert_int_eq(lk_lock_release(st.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
  stage_end();
}

SCENARIO(waiter_is_granted_when_the_holder_releases)
{
  stage_begin(k);
  stage_wait();
  uint64_t token = lk_lock_token(st.rival.lock);

  model_run(&st.server, 2 * T);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  ck_assert(!lk_lock_ok(st.own.lock));
  ck_assert(locker_told(&st.own, ""));
  stage_release(&st.rival);
  ck_assert_int_eq(st.own.acquired, 0);
  ck_assert(lk_lock_ok(st.own.lock));
  ck_assert_uint_gt(lk_lock_token(st.own.lock), token);
  stage_want(&st.rival); /* and the other way round */
  ck_assert_int_eq(st.rival.acquired, NOT_YET);
  stage_release(&st.own);
  ck_assert_int_eq(st.rival.acquired, 0);
  stage_end();
}

enum { CROWD = 6 };

SCENARIO(waiters_are_granted_in_the_order_of_their_requests)
{
  locker crowd[CROWD];

  stage_begin(k);
  const lk_lock_config c = stage_config((lk_lock_config){0});

  stage_hold(&st.rival);
  for (int i = 0; i < CROWD; i++) {
    ck_assert(
        stage_try_init(&crowd[i], i % 2 == 0 ? &st.ours : &st.theirs, &c));
    stage_want(&crowd[i]);
    ck_assert_int_eq(crowd[i].acquired, NOT_YET);
  }
  stage_release(&st.rival);
  for (int i = 0; i < CROWD; i++) {
    ck_assert_int_eq(crowd[i].acquired, 0);
    for (int j = i + 1; j < CROWD; j++)
      ck_assert_int_eq(crowd[j].acquired, NOT_YET);
    stage_release(&crowd[i]);
  }
  for (int i = 0; i < CROWD; i++)
    locker_free(&crowd[i]);
  stage_end();
}

/* ---- tries and timeouts -------------------------------------------------- */

SCENARIO(try_of_a_held_lock_is_busy_and_leaves_nothing)
{
  stage_begin(k);
  size_t nodes = hold_by_rival();

  ck_assert_int_eq(locker_want(&st.own, 0), 0);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.acquired, LK_ERR_BUSY);
  ck_assert_str_eq(st.ours.link->log, k->try);
  ck_assert(locker_told(&st.own, ""));
  expect_nothing_left(nodes);
  ck_assert(lk_lock_ok(st.rival.lock));
  stage_release(&st.rival);
  ck_assert_int_eq(locker_want(&st.own, 0), 0);
  model_turn(&st.server);
  ck_assert_int_eq(st.own.acquired, 0);
  stage_end();
}

SCENARIO(timeout_ends_the_wait_and_leaves_nothing)
{
  stage_begin(k);
  size_t nodes = hold_by_rival();

  ck_assert_int_eq(locker_want(&st.own, 300), 0);
  model_run(&st.server, 300);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  st.ours.link->log[0] = '\0';
  model_run(&st.server, 1);
  ck_assert_int_eq(st.own.acquired, LK_ERR_DEADLINE);
  ck_assert_str_eq(st.ours.link->log, k->give_up);
  expect_nothing_left(nodes);
  stage_release(&st.rival);
  model_run(&st.server, T);
  expect_nothing_left(0);
  stage_end();
}

SCENARIO(timeout_ends_the_wait_without_a_connection)
{
  stage_begin(k);
  size_t nodes = hold_by_rival();

  ck_assert_int_eq(locker_want(&st.own, 300), 0);
  model_turn(&st.server);
  st.ours.link->frozen = true;
  model_drop(st.ours.link);
  model_run(&st.server, 300);
  ck_assert_int_eq(lk_client_state(st.ours.link->client), LK_STATE_SUSPENDED);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  model_run(&st.server, 1);
  ck_assert_int_eq(st.own.acquired, LK_ERR_DEADLINE);
  st.ours.link->frozen = false;
  model_run(&st.server, T / 4);
  expect_nothing_left(nodes);
  stage_end();
}

SCENARIO(granted_lock_has_no_timeout)
{
  stage_begin(k);
  ck_assert_int_eq(locker_want(&st.own, 300), 0);
  model_run(&st.server, 1000);
  ck_assert_int_eq(st.own.acquired, 0);
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_HELD);
  ck_assert(locker_told(&st.own, ""));
  stage_end();
}

/* ---- cancels ------------------------------------------------------------- */

SCENARIO(cancel_ends_the_acquire_before_it_returns)
{
  stage_begin(k);
  size_t nodes = hold_by_rival();

  stage_want(&st.own);
  lk_lock_cancel(st.own.lock);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CANCELLED);
  lk_lock_cancel(st.own.lock); /* nothing is under way */
  model_turn(&st.server);
  expect_nothing_left(nodes);
  stage_release(&st.rival);
  /* also before anything was sent, and where it would be granted */
  ck_assert_int_eq(locker_want(&st.own, -1), 0);
  lk_lock_cancel(st.own.lock);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CANCELLED);
  model_turn(&st.server);
  expect_nothing_left(0);
  stage_hold(&st.rival);
  stage_end();
}

/* Cancel when so many bytes of replies have arrived, and break the connection
 * with `cut`. false: all had arrived. */
static bool cancels_after(const kind *k, size_t bytes, bool cut)
{
  stage_begin(k);
  hold_by_rival();
  st.ours.link->allow = bytes;
  stage_want(&st.own);
  bool more = st.ours.link->allow == 0;

  lk_lock_cancel(st.own.lock);
  ck_assert_int_eq(st.own.acquired, LK_ERR_CANCELLED);
  if (cut)
    model_drop(st.ours.link);
  st.ours.link->allow = SIZE_MAX;
  stage_release(&st.rival);
  model_run(&st.server, T / 4);
  expect_nothing_left(0);
  stage_end();
  return more;
}

SCENARIO(cancel_between_any_two_replies_leaves_nothing)
{
  for (int cut = 0; cut < 2; cut++) {
    size_t bytes = 0;

    while (cancels_after(k, bytes, cut == 1))
      bytes += 19;
    ck_assert_uint_gt(bytes, 60);
  }
}

const scenario waiting_scenarios[] = {
    &holder_knows_its_node_its_token_and_its_deadline,
    &waiter_is_granted_when_the_holder_releases,
    &waiters_are_granted_in_the_order_of_their_requests,
    &try_of_a_held_lock_is_busy_and_leaves_nothing,
    &timeout_ends_the_wait_and_leaves_nothing,
    &timeout_ends_the_wait_without_a_connection,
    &granted_lock_has_no_timeout,
    &cancel_ends_the_acquire_before_it_returns,
    &cancel_between_any_two_replies_leaves_nothing,
    NULL};
