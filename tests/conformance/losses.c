/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Sessions that expire, nodes that others delete or change, permissions. */

/* The own lock is lost; the rival, which waited, holds. */
static void expect_lost(const char *told)
{
  ck_assert(locker_told(&st.own, told));
  ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_LOST);
  ck_assert_uint_eq(lk_lock_token(st.own.lock), 0);
  ck_assert(!lk_lock_ok(st.own.lock));
  ck_assert_int_eq(lk_lock_acquire(st.own.lock, -1, NULL, NULL), LK_ERR_STATE);
  ck_assert_int_eq(st.rival.acquired, 0);
  model_run(&st.server, 2 * T);
  ck_assert(locker_told(&st.own, "")); /* once */
  ck_assert_int_eq(lk_lock_release(st.own.lock, NULL, NULL), LK_ERR_LOST);
  ck_assert_int_eq(lk_lock_release(st.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
}

/* The lock can be acquired again, and the rival releases it. */
static void acquire_again(void)
{
  stage_want(&st.own);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  stage_release(&st.rival);
  ck_assert_int_eq(st.own.acquired, 0);
}

/* ---- sessions ------------------------------------------------------------ */

SCENARIO(expired_waiter_queues_anew)
{
  stage_begin(k);
  stage_wait();
  size_t nodes = stage_nodes();

  stage_expire(&st.ours);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  if (k->queued)
    ck_assert(locker_told(
        &st.own, "place lost SESSION_EXPIRED\nwaiting 1 its holder\n"));
  ck_assert_uint_eq(stage_nodes(), nodes);
  stage_release(&st.rival);
  ck_assert_int_eq(st.own.acquired, 0);
  stage_end();
}

SCENARIO(expiry_ends_the_acquire_where_that_was_asked_for)
{
  stage_begin_with(k, (lk_lock_config){.fail_on_expiry = true});
  size_t nodes;

  stage_hold(&st.rival);
  nodes = stage_nodes();
  stage_want(&st.own);
  stage_expire(&st.ours);
  ck_assert_int_eq(st.own.acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_uint_eq(stage_nodes(), nodes);
  stage_end();
}

SCENARIO(expired_holder_loses_the_lock_once)
{
  stage_begin(k);
  stage_hold(&st.own);
  stage_want(&st.rival);
  ck_assert_int_eq(st.rival.acquired, NOT_YET);
  stage_expire(&st.ours);
  expect_lost("suspended\nlost SESSION_EXPIRED\n");
  acquire_again();
  stage_end();
}

/* ---- nodes --------------------------------------------------------------- */

SCENARIO(holder_whose_node_is_deleted_loses_the_lock_once)
{
  for (size_t i = 0; i < k->held_nodes; i++) {
    stage_begin(k);
    stage_hold(&st.own);
    stage_want(&st.rival);
    if (k->queued) /* its nodes are watched from the first heartbeat on */
      model_run(&st.server, T / 2);
    model_delete(&st.server, stage_node_of(&st.ours, i));
    model_turn(&st.server);
    ck_assert_ptr_null(stage_node_of(&st.ours, 0)); /* the others go with it */
    expect_lost("lost NO_NODE\n");
    acquire_again();
    stage_end();
  }
}

SCENARIO(waiter_whose_node_is_deleted_queues_anew)
{
  for (size_t i = 0; i < k->waiting_nodes; i++) {
    stage_begin(k);
    stage_wait();
    size_t nodes = stage_nodes();

    model_run(&st.server, T / 2);
    model_delete(&st.server, stage_node_of(&st.ours, i));
    model_run(&st.server, T / 4);
    ck_assert_int_eq(st.own.acquired, NOT_YET);
    if (k->places == 0 || i < k->places) /* permits are made anew */
      ck_assert(
          locker_told(&st.own, "place lost NO_NODE\nwaiting 1 its holder\n"));
    ck_assert_uint_eq(stage_nodes(), nodes);
    stage_release(&st.rival);
    ck_assert_int_eq(st.own.acquired, 0);
    stage_end();
  }
}

SCENARIO(change_of_a_nodes_data_is_no_release)
{
  stage_begin(k);
  stage_wait();
  for (int n = 0; n < 3; n++) {
    const char *path;

    for (size_t i = 0; (path = stage_node_of(&st.theirs, i)) != NULL; i++)
      model_set(&st.server, path, "x");
    for (size_t i = 0; (path = stage_node_of(&st.ours, i)) != NULL; i++)
      model_set(&st.server, path, "x");
    model_turn(&st.server);
  }
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  ck_assert(lk_lock_ok(st.rival.lock));
  ck_assert(locker_told(&st.own, "") && locker_told(&st.rival, ""));
  stage_release(&st.rival);
  ck_assert_int_eq(st.own.acquired, 0);
  stage_end();
}

/* ---- permissions --------------------------------------------------------- */

/* An acquire where a directory lacks a permission. */
static void acquire_without(const kind *k, const char *dir, int32_t permission)
{
  stage_begin(k);
  model_deny(&st.server, dir, permission);
  stage_want(&st.own);
  ck_assert_int_eq(st.own.acquired, LK_ERR_NO_AUTH);
  ck_assert_uint_eq(stage_nodes(), 0);
  ck_assert_uint_eq(lk_lease_pending_cleanups(st.ours.link->client), 0);
  ck_assert_str_eq(st.ours.left_behind, "");
  stage_end();
}

SCENARIO(acquire_without_create_permission_fails_and_leaves_nothing)
{
  for (size_t i = 0; k->queues[i] != NULL; i++)
    acquire_without(k, k->queues[i], LK_PERM_CREATE);
}

SCENARIO(acquire_without_read_permission_fails_and_leaves_nothing)
{
  for (size_t i = 0; k->queues[i] != NULL; i++)
    acquire_without(k, k->queues[i], LK_PERM_READ);
}

/* Some nodes are deleted after the grant, some by the release. */
SCENARIO(node_without_delete_permission_is_left_and_that_is_reported)
{
  for (size_t i = 0; k->queues[i] != NULL; i++) {
    char prefix[64];

    stage_begin(k);
    model_deny(&st.server, k->queues[i], LK_PERM_DELETE);
    stage_hold(&st.own);
    bool left_before = st.ours.left_behind[0] != '\0';

    locker_release(&st.own);
    model_turn(&st.server);
    ck_assert_int_eq(st.own.released, left_before ? 0 : LK_ERR_NO_AUTH);
    snprintf(prefix, sizeof prefix, "NO_AUTH %s/", k->queues[i]);
    ck_assert_int_eq(strncmp(st.ours.left_behind, prefix, strlen(prefix)), 0);
    ck_assert_uint_eq(lk_lease_pending_cleanups(st.ours.link->client), 0);
    ck_assert_int_eq(lk_lock_get_state(st.own.lock), LK_LOCK_IDLE);
    model_deny(&st.server, k->queues[i], 0);
    stage_end_sessions();
  }
}

const scenario loss_scenarios[] = {
    &expired_waiter_queues_anew,
    &expiry_ends_the_acquire_where_that_was_asked_for,
    &expired_holder_loses_the_lock_once,
    &holder_whose_node_is_deleted_loses_the_lock_once,
    &waiter_whose_node_is_deleted_queues_anew,
    &change_of_a_nodes_data_is_no_release,
    &acquire_without_create_permission_fails_and_leaves_nothing,
    &acquire_without_read_permission_fails_and_leaves_nothing,
    &node_without_delete_permission_is_left_and_that_is_reported,
    NULL};
