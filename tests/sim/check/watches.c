/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/one_server.h"

/**
 * @file
 * The simulated ensemble as one server: what watchers are told.
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
  expect_event(&q, DELETED, "/a/b"); /* once, for both kinds */
  expect_event(&q, CHILDREN, "/a");
  ck_assert(!sim_raw_client_has(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(only_exists_watches_what_is_not_there)
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

START_TEST(watches_go_with_their_connection)
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

static int add_watch(sim_raw_client *who, const char *path, int32_t mode)
{
  struct lk_add_watch_request r = {lk_text(path), mode};
  int32_t xid = sim_raw_client_send(who, LK_OPCODE_ADD_WATCH, &r);
  sim_reply reply = sim_raw_client_next(who);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(persistent_watches_stay)
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
  /* A watch of one time takes its place, and is gone with it. */
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(set(&p, "/a", lk_text("y")), 0);
  expect_event(&q, CHANGED, "/a");
  ck_assert_int_eq(set(&p, "/a", lk_text("z")), 0);
  ck_assert(!sim_raw_client_has(&q));
  teardown();
}
END_TEST

START_TEST(recursive_watches_tell_of_all_below_but_not_of_children)
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

static int unwatch(sim_raw_client *who, int32_t op, int32_t type)
{
  struct lk_path_type_request r = {lk_text("/a"), type};
  int32_t xid = sim_raw_client_send(who, op, &r);
  sim_reply reply = sim_raw_client_next(who);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

START_TEST(watches_can_be_removed_and_looked_for)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", 0), 0);
  sim_raw_client_do_read(&q, LK_OPCODE_GET_DATA, "/a", true);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 1), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_CHECK_WATCHES, 2), 0);
  /* What it says is true of anybody's. */
  ck_assert_int_eq(unwatch(&p, LK_OPCODE_CHECK_WATCHES, 2), 0);
  ck_assert_int_eq(unwatch(&p, LK_OPCODE_REMOVE_WATCHES, 2), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 2), 0);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_REMOVE_WATCHES, 3), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(unwatch(&q, LK_OPCODE_CHECK_WATCHES, 4), LK_ERR_MARSHALLING);
  teardown();
}
END_TEST

SUITE("watches", watch_reports_once_and_before_the_reply,
      deletion_is_reported_for_the_node_then_for_its_parent,
      only_exists_watches_what_is_not_there, watches_go_with_their_connection,
      missed_changes_are_reported_in_the_order_of_the_request,
      persistent_watches_stay,
      recursive_watches_tell_of_all_below_but_not_of_children,
      watches_can_be_removed_and_looked_for)
