/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/check/one_server.h"

/**
 * @file The model with one server: watches and their events.
 */

START_TEST(watch_reports_once_and_before_the_reply)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_watch(&p, LK_OPCODE_GET_DATA, "/a"), 0);
  ck_assert_int_eq(sim_raw_client_do_watch(&p, LK_OPCODE_EXISTS, "/a"), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  struct lk_set_data_request r = {lk_text("/a"), lk_text("x"), -1};
  int32_t xid = sim_raw_client_send(&p, LK_OPCODE_SET_DATA, &r);

  expect_event(&p, LK_EVENT_CHANGED, "/a");
  expect_reply(&p, xid, 0);
  ck_assert_int_eq(set_data(&p, "/a", lk_text("y")), 0);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(deletion_is_reported_for_the_node_then_for_its_parent)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_PERSISTENT), 0);
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_CHILDREN, "/a");
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_CHILDREN2, "/a/b");
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_DATA, "/a/b");
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), 0);
  expect_event(&q, LK_EVENT_DELETED, "/a/b"); /* one event for both kinds */
  expect_event(&q, LK_EVENT_CHILDREN, "/a");
  ck_assert(!sim_raw_client_has_bytes(&q));
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  teardown();
}
END_TEST

START_TEST(only_exists_sets_a_watch_on_a_missing_node)
{
  setup();
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_DATA, "/a");
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_CHILDREN, "/a");
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 0);
  sim_raw_client_do_watch(&q, LK_OPCODE_EXISTS, "/a");
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  expect_event(&q, LK_EVENT_CREATED, "/a");
  teardown();
}
END_TEST

START_TEST(watches_end_with_their_connection)
{
  setup();
  sim_raw_client_do_watch(&q, LK_OPCODE_EXISTS, "/a");
  sim_raw_client_do_watch(&p, LK_OPCODE_EXISTS, "/a");
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_CHILDREN, "/");
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 3);
  sim_raw_client_hang_up(&q);
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 1);
  teardown();
}
END_TEST

START_TEST(missed_changes_are_reported_in_the_order_of_the_request)
{
  lk_bytes data[3] = {lk_text("/b"), lk_text("/a"), lk_text("/gone")},
           exist[2] = {lk_text("/b"), lk_text("/no")},
           child[1] = {lk_text("/a")};

  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  int64_t since =
      expect_reply(&p, sim_raw_client_create(&p, "/b", LK_PERSISTENT), 0).zxid;

  ck_assert_int_eq(set_data(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(set_data(&p, "/b", lk_text("x")), 0);
  struct lk_set_watches_request r = {
      since, lk__vec_of(data, 3), lk__vec_of(exist, 2), lk__vec_of(child, 1)};

  sim_raw_client_send_as(&q, LK_XID_SET_WATCHES, LK_OPCODE_SET_WATCHES, &r);
  expect_event(&q, LK_EVENT_CHANGED, "/b");
  expect_event(&q, LK_EVENT_CHANGED, "/a");
  expect_event(&q, LK_EVENT_DELETED, "/gone");
  expect_event(&q, LK_EVENT_CREATED, "/b");
  expect_reply(&q, LK_XID_SET_WATCHES, 0);
  /* Those on /no and on the children of /a, of which no change was missed. */
  ck_assert_uint_eq(sim_ensemble_watches(lab.ensemble), 2);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/x", LK_PERSISTENT), 0);
  expect_event(&q, LK_EVENT_CHILDREN, "/a");
  teardown();
}
END_TEST

enum { UNKNOWN_MODE = 2 };

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
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(add_watch(&q, "/a", LK_WATCH_PERSISTENT), 0);
  ck_assert_int_eq(add_watch(&q, "/a", UNKNOWN_MODE), LK_ERR_MARSHALLING);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_PERSISTENT), 0);
    expect_event(&q, LK_EVENT_CHILDREN, "/a");
    ck_assert_int_eq(set_data(&p, "/a", lk_text("x")), 0);
    expect_event(&q, LK_EVENT_CHANGED, "/a");
    ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b"), 0);
    expect_event(&q, LK_EVENT_CHILDREN, "/a");
  }
  /* A one-shot watch replaces the persistent one, and ends with its event. */
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_DATA, "/a");
  ck_assert_int_eq(set_data(&p, "/a", lk_text("y")), 0);
  expect_event(&q, LK_EVENT_CHANGED, "/a");
  ck_assert_int_eq(set_data(&p, "/a", lk_text("z")), 0);
  ck_assert(!sim_raw_client_has_bytes(&q));
  teardown();
}
END_TEST

START_TEST(recursive_watches_report_descendants_but_no_child_events)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  ck_assert_int_eq(add_watch(&q, "/a", LK_WATCH_RECURSIVE), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b", LK_PERSISTENT), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a/b/c", LK_PERSISTENT), 0);
  ck_assert_int_eq(set_data(&p, "/a", lk_text("x")), 0);
  ck_assert_int_eq(sim_raw_client_do_delete(&p, "/a/b/c"), 0);
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/ab", LK_PERSISTENT), 0);
  expect_event(&q, LK_EVENT_CREATED, "/a/b");
  expect_event(&q, LK_EVENT_CREATED, "/a/b/c");
  expect_event(&q, LK_EVENT_CHANGED, "/a");
  expect_event(&q, LK_EVENT_DELETED, "/a/b/c");
  ck_assert(!sim_raw_client_has_bytes(&q));
  teardown();
}
END_TEST

/* The types of removeWatches and checkWatches. */
enum { CHILDREN = 1, DATA = 2, ANY = 3, UNKNOWN_TYPE = 4 };

/* Sends a removeWatches or checkWatches for /a. Returns the error. */
static int send_path_type(sim_raw_client *client, int32_t op, int32_t type)
{
  struct lk_path_type_request r = {lk_text("/a"), type};
  int32_t xid = sim_raw_client_send(client, op, &r);
  sim_reply reply = sim_raw_client_next(client);

  ck_assert_int_eq(reply.xid, xid);
  return reply.err;
}

static int remove_watch(sim_raw_client *client, int32_t type)
{
  return send_path_type(client, LK_OPCODE_REMOVE_WATCHES, type);
}

static int check_watch(sim_raw_client *client, int32_t type)
{
  return send_path_type(client, LK_OPCODE_CHECK_WATCHES, type);
}

START_TEST(watches_can_be_removed_and_checked)
{
  setup();
  ck_assert_int_eq(sim_raw_client_do_create(&p, "/a", LK_PERSISTENT), 0);
  sim_raw_client_do_watch(&q, LK_OPCODE_GET_DATA, "/a");
  ck_assert_int_eq(remove_watch(&q, CHILDREN), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(check_watch(&q, DATA), 0);
  /* checkWatches also finds watches of other clients. */
  ck_assert_int_eq(check_watch(&p, DATA), 0);
  ck_assert_int_eq(remove_watch(&p, DATA), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(remove_watch(&q, DATA), 0);
  ck_assert_int_eq(remove_watch(&q, ANY), LK_ERR_NO_WATCHER);
  ck_assert_int_eq(check_watch(&q, UNKNOWN_TYPE), LK_ERR_MARSHALLING);
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
