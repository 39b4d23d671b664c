/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Sessions that expire, nodes that others delete or change, permissions. */

/* Expect that the own lock is lost, and that the rival, which waited, holds. */
static void expect_lost(const char *events)
{
  ck_assert(locker_check_events(&fx.own, events));
  ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_LOST);
  ck_assert_uint_eq(lk_lock_token(fx.own.lock), 0);
  ck_assert(!lk_lock_ok(fx.own.lock));
  ck_assert_int_eq(lk_lock_acquire(fx.own.lock, FOREVER, NULL, NULL),
                   LK_ERR_STATE);
  ck_assert_int_eq(fx.rival.acquired, 0);
  model_run(&fx.server, 2 * T);
  ck_assert(locker_check_events(&fx.own, "")); /* the loss is reported once */
  ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), LK_ERR_LOST);
  ck_assert_int_eq(lk_lock_release(fx.own.lock, NULL, NULL), LK_ERR_NOT_HELD);
}

/* Acquires the own lock again, which the rival holds and then releases. */
static void acquire_again(void)
{
  locker_request(&fx.own);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
}

/* ---- sessions ------------------------------------------------------------ */

SCENARIO(expired_waiter_queues_again)
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  size_t nodes = fixture_count_nodes();

  fixture_expire(&fx.own_client);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  if (k->queued)
    ck_assert(locker_check_events(
        &fx.own, "place lost SESSION_EXPIRED\nwaiting 1 its holder\n"));
  ck_assert_uint_eq(fixture_count_nodes(), nodes);
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
  fixture_end();
}

SCENARIO(expiry_ends_the_acquire_if_configured)
{
  fixture_begin_with(k, (lk_lock_config){.fail_on_expiry = true});
  size_t nodes;

  fixture_hold(&fx.rival);
  nodes = fixture_count_nodes();
  locker_request(&fx.own);
  fixture_expire(&fx.own_client);
  ck_assert_int_eq(fx.own.acquired, LK_ERR_SESSION_EXPIRED);
  ck_assert_uint_eq(fixture_count_nodes(), nodes);
  fixture_end();
}

SCENARIO(expired_holder_loses_the_lock_once)
{
  fixture_begin(k);
  fixture_hold(&fx.own);
  locker_request(&fx.rival);
  ck_assert_int_eq(fx.rival.acquired, NOT_YET);
  fixture_expire(&fx.own_client);
  expect_lost("suspended\nlost SESSION_EXPIRED\n");
  acquire_again();
  fixture_end();
}

/* ---- nodes --------------------------------------------------------------- */

SCENARIO(holder_whose_node_is_deleted_loses_the_lock_once)
{
  for (size_t i = 0; i < 2 * k->held_nodes; i++) {
    const bool watch_ended = i >= k->held_nodes;

    fixture_begin(k);
    fixture_hold(&fx.own);
    locker_request(&fx.rival);
    if (k->queued) /* its nodes are watched from the first heartbeat on */
      model_run(&fx.server, T / 2);
    const char *node = fixture_node_of(&fx.own_client, i % k->held_nodes);

    if (watch_ended)
      test_client_end_watches(&fx.own_client, node);
    model_delete(&fx.server, node);
    model_turn(&fx.server);
    /* The client has deleted its other nodes. */
    ck_assert_ptr_null(fixture_node_of(&fx.own_client, 0));
    expect_lost("lost NO_NODE\n");
    acquire_again();
    fixture_end();
  }
}

SCENARIO(waiter_whose_node_is_deleted_queues_again)
{
  for (size_t i = 0; i < k->waiting_nodes; i++) {
    fixture_begin(k);
    fixture_wait_behind_rival();
    size_t nodes = fixture_count_nodes();

    model_run(&fx.server, T / 2);
    model_delete(&fx.server, fixture_node_of(&fx.own_client, i));
    model_run(&fx.server, T / 4);
    ck_assert_int_eq(fx.own.acquired, NOT_YET);
    /* A client whose permit node is deleted creates it again in its place. */
    if (k->places == 0 || i < k->places)
      ck_assert(locker_check_events(
          &fx.own, "place lost NO_NODE\nwaiting 1 its holder\n"));
    ck_assert_uint_eq(fixture_count_nodes(), nodes);
    fixture_release(&fx.rival);
    ck_assert_int_eq(fx.own.acquired, 0);
    fixture_end();
  }
}

SCENARIO(waiter_reads_again_when_its_watches_have_ended)
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  size_t watches = model_watches(fx.own_client.link);

  for (size_t i = 0; k->queues[i] != NULL; i++) {
    test_client_end_watches(&fx.own_client, k->queues[i]);
    for (size_t n = 0; n < model_children(&fx.server, k->queues[i]); n++)
      test_client_end_watches(&fx.own_client,
                              model_child(&fx.server, k->queues[i], n));
  }
  ck_assert_uint_eq(model_watches(fx.own_client.link), watches);
  fixture_clear_logs();
  fixture_release(&fx.rival);
  ck_assert_int_eq(fx.own.acquired, 0);
  ck_assert_str_eq(fx.own_client.link->log, k->grant);
  fixture_end();
}

SCENARIO(change_of_a_nodes_data_is_no_release)
{
  fixture_begin(k);
  fixture_wait_behind_rival();
  model_run(&fx.server, T / 2); /* until the holder's nodes are watched */
  for (int n = 0; n < 3; n++) {
    const char *path;

    for (size_t i = 0; (path = fixture_node_of(&fx.rival_client, i)) != NULL;
         i++)
      model_set(&fx.server, path, "x");
    for (size_t i = 0; (path = fixture_node_of(&fx.own_client, i)) != NULL; i++)
      model_set(&fx.server, path, "x");
    model_turn(&fx.server);
  }
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  ck_assert(lk_lock_ok(fx.rival.lock));
  ck_assert(locker_check_events(&fx.own, "") &&
            locker_check_events(&fx.rival, ""));
  /* The nodes are still watched. */
  model_delete(&fx.server, fixture_node_of(&fx.rival_client, 0));
  model_turn(&fx.server);
  ck_assert(locker_check_events(&fx.rival, "lost NO_NODE\n"));
  ck_assert_int_eq(fx.own.acquired, 0);
  fixture_end();
}

/* ---- permissions --------------------------------------------------------- */

/* Expect that an acquire fails if clients lack a permission of `dir`. */
static void acquire_without_permission(const kind *k, const char *dir,
                                       int32_t permission)
{
  fixture_begin(k);
  model_deny(&fx.server, dir, permission);
  for (int cancels = 0; cancels < 2; cancels++) {
    ck_assert_int_eq(locker_acquire(&fx.own, FOREVER), 0);
    if (cancels)
      lk_lock_cancel(fx.own.lock);
    model_turn(&fx.server);
    ck_assert_int_eq(fx.own.acquired,
                     cancels ? LK_ERR_CANCELLED : LK_ERR_NO_AUTH);
    ck_assert_uint_eq(fixture_count_nodes(), 0);
    ck_assert_uint_eq(lk_lease_pending_cleanups(fx.own_client.link->client), 0);
    ck_assert_str_eq(fx.own_client.left_behind, "");
  }
  fixture_end();
}

SCENARIO(acquire_without_create_permission_fails_and_leaves_nothing)
{
  for (size_t i = 0; k->queues[i] != NULL; i++)
    acquire_without_permission(k, k->queues[i], LK_PERM_CREATE);
}

/* The first `dir_count` directories of the kind exist, and the clients lack the
   permission to create children of `denied`. */
static void acquire_without_directories(const kind *k, size_t dir_count,
                                        const char *denied, int expected)
{
  fixture_begin_empty(k);
  test_client_init(&fx.own_client, &fx.server, NULL);
  const lk_lock_config c = fixture_config((lk_lock_config){0});

  ck_assert(fixture_try_make(&fx.own, &fx.own_client, &c));
  for (size_t i = 0; i < dir_count; i++)
    model_create(&fx.server, k->dirs[i]);
  model_deny(&fx.server, denied, LK_PERM_CREATE);
  locker_request(&fx.own);
  ck_assert_int_eq(fx.own.acquired, expected);
  ck_assert_uint_le(model_count(fx.own_client.link, "create2"),
                    2 * (k->held_nodes + k->places));
  ck_assert_uint_eq(fixture_count_nodes(), expected == 0 ? k->held_nodes : 0);
  locker_free(&fx.own);
  model_turn(&fx.server);
  test_client_free(&fx.own_client);
  model_done(&fx.server);
}

SCENARIO(refused_create_of_a_directory_fails_the_acquire)
{
  acquire_without_directories(k, 0, "/", LK_ERR_NO_AUTH);
  acquire_without_directories(k, 1, k->dirs[0], LK_ERR_NO_AUTH);
  /* That of a directory that exists does not. */
  acquire_without_directories(k, 1, "/", 0);
}

SCENARIO(acquire_without_read_permission_fails_and_leaves_nothing)
{
  for (size_t i = 0; k->queues[i] != NULL; i++)
    acquire_without_permission(k, k->queues[i], LK_PERM_READ);
}

/* The failure is reported when a node is to be deleted. Some kinds delete a
   node after the grant; then the release succeeds. With the others it fails. */
SCENARIO(node_without_delete_permission_is_left_and_that_is_reported)
{
  for (size_t i = 0; k->queues[i] != NULL; i++) {
    enum { NO_PERMISSION = 0 };
    char prefix[64];

    fixture_begin(k);
    model_deny(&fx.server, k->queues[i], LK_PERM_DELETE);
    fixture_hold(&fx.own);
    bool left_before = fx.own_client.left_behind[0] != '\0';

    locker_release(&fx.own);
    model_turn(&fx.server);
    ck_assert_int_eq(fx.own.released, left_before ? 0 : LK_ERR_NO_AUTH);
    snprintf(prefix, sizeof prefix, "NO_AUTH %s/", k->queues[i]);
    ck_assert_int_eq(strncmp(fx.own_client.left_behind, prefix, strlen(prefix)),
                     0);
    ck_assert_uint_eq(lk_lease_pending_cleanups(fx.own_client.link->client), 0);
    ck_assert_int_eq(lk_lock_get_state(fx.own.lock), LK_LOCK_IDLE);
    model_deny(&fx.server, k->queues[i], NO_PERMISSION);
    fixture_end_sessions();
  }
}

const scenario loss_scenarios[] = {
    &expired_waiter_queues_again,
    &expiry_ends_the_acquire_if_configured,
    &expired_holder_loses_the_lock_once,
    &holder_whose_node_is_deleted_loses_the_lock_once,
    &waiter_whose_node_is_deleted_queues_again,
    &waiter_reads_again_when_its_watches_have_ended,
    &change_of_a_nodes_data_is_no_release,
    &acquire_without_create_permission_fails_and_leaves_nothing,
    &refused_create_of_a_directory_fails_the_acquire,
    &acquire_without_read_permission_fails_and_leaves_nothing,
    &node_without_delete_permission_is_left_and_that_is_reported,
    NULL};
