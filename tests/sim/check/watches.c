/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/one_server.h"

/**
 * @file The model with one server: watches and their events.
 */

START_TEST(watch_reports_once_and_before_the_reply)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_GET_DATA, "/a", true),
                   0);
  ck_assert_int_eq(sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/a", true), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  struct lk_set_data_request r = {lk_text("/a"), lk_text("x"), -1};
  int32_t xid = sim_raw_client_send(&p, LK_OPCODE_SET_DATA, &r);

  expect_event(&p, CHANGED, "/a");
  expect_reply(&p, xid, 0);
  ck_assert_int_eq(set(&p, "/a", lk_text("y")), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(deletion_is_reported_for_the_node_then_for_its_parent)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", 0), 0);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_CHILDREN, "/a", true);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_CHILDREN2, "/a/b", true);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a/b", true);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), 0);
  expect_event(&q, DELETED, "/a/b"); /* one event for both kinds */
  expect_event(&q, CHILDREN, "/a");
  ck_assert(!sim_raw_client_has(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(only_exists_sets_a_watch_on_a_missing_node)
{
  setup();
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_CHILDREN, "/a", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  sim_raw_client_do_read(&q, LK_OPCODE_EXISTS, "/a", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  expect_event(&q, CREATED, "/a");
  teardown();
}
END_TEST

START_TEST(watches_end_with_their_connection)
{
  setup();
  sim_raw_client_do_read(&q, LK_OPCODE_EXISTS, "/a", true);
  sim_raw_client_do_read(&p, LK_OPCODE_EXISTS, "/a", true);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_CHILDREN, "/", true);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 3);
  sim_raw_client_hang_up(&q);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  teardown();
}
END_TEST

START_TEST(missed_changes_are_reported_in_the_order_of_the_request)
{
  static const char *const paths[] = {"/b", "/a", "/gone"};
  lk_bytes data[3], exist[2] = {lk_text("/b"), lk_text("/no")},
                    child[1] = {lk_text("/a")};

  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  int64_t since = expect_reply(&p, sim_raw_client_create(&p, "/b", 0), 0).zxid;

  ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(set(&p, "/b", lk_text("x")), 0);
  for (int i = 0; i < 3; i++)
    data[i] = lk_text(paths[i]);
  struct lk_set_watches_request r = {
      since, lk__vec_of(data, 3), lk__vec_of(exist, 2), lk__vec_of(child, 1)};

  sim_raw_client_send_as(&q, LK_XID_SET_WATCHES, LK_OPCODE_SET_WATCHES, &r);
  expect_event(&q, CHANGED, "/b");
  expect_event(&q, CHANGED, "/a");
  expect_event(&q, DELETED, "/gone");
  expect_event(&q, CREATED, "/b");
  expect_reply(&q, LK_XID_SET_WATCHES, 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 2);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/x", 0), 0);
  expect_event(&q, CHILDREN, "/a");
  teardown();
}
END_TEST

static int add_watch(sim_raw_client *client, const char *path, int32_t mode)
{
  struct lk_add_watch_request r = {lk_text(path), mode};
  int32_t xid = sim_raw_client_send(client, LK_OPCODE_ADD_WATCH, &r);
  sim_reply reply = sim_raw_client_next(client);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(persistent_watches_report_repeatedly)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 2), LK_ERR_MARSHALLING);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", 0), 0);
    expect_event(&q, CHILDREN, "/a");
    ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
    expect_event(&q, CHANGED, "/a");
    ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), 0);
    expect_event(&q, CHILDREN, "/a");
  }
  /* A one-shot watch replaces the persistent one, and ends with its event. */
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(set(&p, "/a", lk_text("y")), 0);
  expect_event(&q, CHANGED, "/a");
  ck_assert_int_eq(set(&p, "/a", lk_text("z")), 0);
  ck_assert(!sim_raw_client_has(&q));
  teardown();
}
END_TEST

START_TEST(recursive_watches_report_descendants_but_no_child_events)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  ck_assert_int_eq(add_watch(&q, "/a", 1), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", 0), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b/c", 0), 0);
  ck_assert_int_eq(set(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b/c"), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/ab", 0), 0);
  expect_event(&q, CREATED, "/a/b");
  expect_event(&q, CREATED, "/a/b/c");
  expect_event(&q, CHANGED, "/a");
  expect_event(&q, DELETED, "/a/b/c");
  ck_assert(!sim_raw_client_has(&q));
  teardown();
}
END_TEST

static int remove_or_check_watch(sim_raw_client *client, int32_t op,
                                 int32_t type)
{
  struct lk_path_type_request r = {lk_text("/a"), type};
  int32_t xid = sim_raw_client_send(client, op, &r);
  sim_reply reply = sim_raw_client_next(client);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(watches_can_be_removed_and_checked)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(remove_or_check_watch(&q, LK_OPCODE_REMOVE_WATCHES, 1),
                   LK_ERR_NO_WATCHER);
  ck_assert_int_eq(remove_or_check_watch(&q, LK_OPCODE_CHECK_WATCHES, 2), 0);
  /* checkWatches also finds watches of other clients. */
  ck_assert_int_eq(remove_or_check_watch(&p, LK_OPCODE_CHECK_WATCHES, 2), 0);
  ck_assert_int_eq(remove_or_check_watch(&p, LK_OPCODE_REMOVE_WATCHES, 2),
                   LK_ERR_NO_WATCHER);
  ck_assert_int_eq(remove_or_check_watch(&q, LK_OPCODE_REMOVE_WATCHES, 2), 0);
  ck_assert_int_eq(remove_or_check_watch(&q, LK_OPCODE_REMOVE_WATCHES, 3),
                   LK_ERR_NO_WATCHER);
  ck_assert_int_eq(remove_or_check_watch(&q, LK_OPCODE_CHECK_WATCHES, 4),
                   LK_ERR_MARSHALLING);
  teardown();
}
END_TEST

SUITE("watches", watch_reports_once_and_before_the_reply,
      deletion_is_reported_for_the_node_then_for_its_parent,
      only_exists_sets_a_watch_on_a_missing_node,
      watches_end_with_their_connection,
      missed_changes_are_reported_in_the_order_of_the_request,
      persistent_watches_report_repeatedly,
      recursive_watches_report_descendants_but_no_child_events,
      watches_can_be_removed_and_checked)
