/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Tests of every error that the headers name for a request. */

#include "live/client/operations.h"
#include "support/shown.h"

#include <latchkey/nodes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_VERSION = -2 }; /* -1 is any version */

/* Opcodes. */
enum { NO_OPCODE = 0, AUTH = 100, SET_WATCHES2 = 105 };

/* ---- errors of all requests --------------------------------------------- */

static void assert_err(const operation *o, int err, int expected,
                       const char *what)
{
  ck_assert_msg(err == expected, "%s, %s: %s (%d), not %s", o->name, what,
                lk_error_text(err), err, lk_error_text(expected));
}

/* Create a node and a child on which only bob, the identity of `there`, has
 * permissions. */
static void make_denied_node(const char *node)
{
  ck_assert_int_eq(add_auth(there, "digest", "bob:secret"), 0);
  ck_assert_int_eq(
      create_as(there, path_there(node, ""), lk_acl_creator(), LK_PERSISTENT),
      0);
  ck_assert_int_eq(create_as(there, path_there(node, "/kid"), lk_acl_creator(),
                             LK_PERSISTENT),
                   0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

START_TEST(missing_or_denied_node_ends_with_its_error)
{
  const operation *o = operation_of(_i);

  fixture_set_up(with_chroot(_i));
  assert_err(o, send_and_wait(o, path_here("/none", ""), NULL), o->missing_err,
             "no such node");
  make_denied_node("/locked");
  assert_err(o, send_and_wait(o, path_here("/locked", ""), NULL),
             denied_err_of(o), "denied");
  ck_assert_uint_eq(lk_client_connection(here), 1);
  fixture_tear_down();
}
END_TEST

START_TEST(invalid_arguments_are_refused_before_sending)
{
  const lk_call without_size = {.size = 0};
  const lk_call with_negative_timeout = {.size = sizeof with_negative_timeout,
                                         .timeout_ms = -2};
  const lk_call with_repeat = {.size = sizeof with_repeat, .repeat = true};
  const operation *o = operation_of(_i);

  fixture_set_up(with_chroot(_i));
  if ((o->flags & NO_PATH) == 0)
    assert_err(o, send_and_wait(o, "relative", NULL), LK_ERR_BAD_PATH, "path");
  assert_err(o, send_and_wait(o, path_here("/a", ""), &without_size),
             LK_ERR_BAD_ARGUMENT, "size");
  assert_err(o, send_and_wait(o, path_here("/a", ""), &with_negative_timeout),
             LK_ERR_DEADLINE, "timeout");
  if ((o->flags & WRITES) != 0)
    assert_err(o, send_and_wait(o, path_here("/a", ""), &with_repeat),
               LK_ERR_BAD_ARGUMENT, "repeat");
  close_client(here);
  assert_err(o, send_and_wait(o, path_here("/a", ""), NULL), LK_ERR_CLOSED,
             "closed");
  fixture_tear_down();
}
END_TEST

/* ---- errors of some requests -------------------------------------------- */

static void assert_error_is(int err, int expected)
{
  ck_assert_msg(err == expected, "%s, not %s", lk_error_text(err),
                lk_error_text(expected));
}

static int err_of_null_acl(void)
{
  return server_has(SERVER_NULL_ACCESS_LIST_IS_INVALID) ? LK_ERR_INVALID_ACL
                                                        : LK_ERR_MARSHALLING;
}

START_TEST(failed_create_names_its_cause)
{
  enum { UNKNOWN_FLAG = 8 };
  static const lk_acls empty_acl;
  lk_acl unknown_scheme = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};
  lk_acls unknown_scheme_acl = {&unknown_scheme, 1};

  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  for (size_t i = 0; i < noperations; i++) {
    const operation *o = &operations[i];

    if ((o->flags & CREATES) == 0)
      continue;
    assert_err(o, send_and_wait(o, path_here("/a", "/mine"), NULL),
               LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, "below an ephemeral node");
    assert_err(o, send_and_wait(o, path_here("/a", ""), NULL), 0, "first time");
    assert_err(o, send_and_wait(o, path_here("/a", ""), NULL),
               (o->flags & NUMBERED) != 0 ? 0 : LK_ERR_NODE_EXISTS,
               "second time");
    /* The next operation creates the same node. */
    delete_node(here, path_here("/a", "/new"), -1);
  }
  assert_error_is(
      create_as(here, path_here("/b", ""), &empty_acl, LK_PERSISTENT),
      err_of_null_acl());
  assert_error_is(
      create_as(here, path_here("/b", ""), &unknown_scheme_acl, LK_PERSISTENT),
      LK_ERR_INVALID_ACL);
  /* `here` has no identity that lk_acl_creator() could name. */
  assert_error_is(
      create_as(here, path_here("/b", ""), lk_acl_creator(), LK_PERSISTENT),
      LK_ERR_INVALID_ACL);
  assert_error_is(create(here, path_here("/b", ""), "", UNKNOWN_FLAG),
                  LK_ERR_BAD_ARGUMENT);
  assert_error_is(create(here, path_here("/b", ""), "", -1),
                  LK_ERR_BAD_ARGUMENT);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  fixture_tear_down();
}
END_TEST

static int set_acl(const char *path, const lk_acls *acl, int32_t version)
{
  reset_last_reply();
  return wait_for_completion(
      lk_set_acl(here, path, acl, version, NULL, on_version, NULL));
}

START_TEST(wrong_version_or_access_list_is_an_error)
{
  static const lk_acls empty_acl;
  const char *a;

  fixture_set_up(with_chroot(_i));
  make_test_node("/a"); /* its nodes have version 0 */
  a = path_here("/a", "");
  assert_error_is(set(here, a, lk_text("x"), 1), LK_ERR_BAD_VERSION);
  assert_error_is(set(here, a, lk_text("x"), INVALID_VERSION),
                  LK_ERR_BAD_ARGUMENT);
  assert_error_is(delete_node(here, a, 1), LK_ERR_BAD_VERSION);
  assert_error_is(delete_node(here, a, INVALID_VERSION), LK_ERR_BAD_ARGUMENT);
  assert_error_is(delete_node(here, a, 0), LK_ERR_NOT_EMPTY);
  assert_error_is(set_acl(a, lk_acl_open(), 1), LK_ERR_BAD_VERSION);
  assert_error_is(set_acl(a, lk_acl_open(), INVALID_VERSION),
                  LK_ERR_BAD_ARGUMENT);
  assert_error_is(set_acl(a, &empty_acl, 0), err_of_null_acl());
  assert_error_is(set_acl(a, NULL, 0), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(tree_of("/a"), test_node_tree);
  fixture_tear_down();
}
END_TEST

/* A failed operation of any type fails the multi, and nothing is executed. */
START_TEST(multi_ends_with_the_error_of_its_failed_operation)
{
  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  const char *a = path_here("/a", ""), *kid = path_here("/a", "/kid");
  const char *below_mine = path_here("/a", "/mine/x"),
             *none = path_here("/none/x", "");
  const struct {
    lk_op op;
    int err;
  } failing[] = {
      {lk_op_create(kid, lk_text(""), NULL, LK_PERSISTENT), LK_ERR_NODE_EXISTS},
      {lk_op_create2(none, lk_text(""), NULL, LK_PERSISTENT), LK_ERR_NO_NODE},
      {lk_op_create(kid, lk_text(""), NULL, LK_CONTAINER), LK_ERR_NODE_EXISTS},
      {lk_op_create_ttl(below_mine, lk_text(""), NULL, 0, 1000),
       LK_ERR_NO_CHILDREN_FOR_EPHEMERALS},
      {lk_op_delete(a, -1), LK_ERR_NOT_EMPTY},
      {lk_op_delete(kid, 1), LK_ERR_BAD_VERSION},
      {lk_op_set(none, lk_text(""), -1), LK_ERR_NO_NODE},
      {lk_op_set(kid, lk_text(""), 1), LK_ERR_BAD_VERSION},
      {lk_op_check(kid, 1), LK_ERR_BAD_VERSION},
      {lk_op_check(none, -1), LK_ERR_NO_NODE},
  };

  for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
    lk_op ops[] = {lk_op_set(a, lk_text("two"), 0), failing[i].op,
                   lk_op_delete(kid, 0)};

    assert_error_is(multi(here, ops, 3), failing[i].err);
    ck_assert_uint_eq(last_reply.count, 3);
    assert_error_is(last_reply.results[0].err, 0);
    assert_error_is(last_reply.results[1].err, failing[i].err);
    assert_error_is(last_reply.results[2].err, LK_ERR_RUNTIME_INCONSISTENCY);
  }
  ck_assert_str_eq(tree_of("/a"), test_node_tree);
  fixture_tear_down();
}
END_TEST

/* ---- quotas ------------------------------------------------------------- */

static void create_with_parents(const char *path, const char *data)
{
  ck_assert_int_eq(wait_for_completion(lk_create_with_parents(
                       there, path, lk_text(data), NULL, 0, NULL, NULL,
                       on_created, reset_last_reply())),
                   0);
}

/* Set a quota of as many nodes and bytes as the test node has already: 3 nodes,
 * and 4 bytes, "one" and "x". */
static void set_exhausted_quota(const char *node)
{
  char path[1024];

  snprintf(path, sizeof path, "/zookeeper/quota%s/zookeeper_limits",
           path_there(node, ""));
  create_with_parents(path,
                      "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=3");
  snprintf(path, sizeof path, "/zookeeper/quota%s/zookeeper_stats",
           path_there(node, ""));
  create_with_parents(path, "count=0,bytes=0");
  /* The leader checks the quota against the state that it has applied, so the
     new limit takes effect after a moment. */
  for (int i = 0;
       create(here, path_here(node, "/probe"), "", LK_PERSISTENT) == 0; i++) {
    ck_assert_int_lt(i, 1000);
    ck_assert_int_eq(delete_node(here, path_here(node, "/probe"), -1), 0);
  }
}

START_TEST(exceeded_quota_is_an_error)
{
  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  set_exhausted_quota("/a");
  for (size_t i = 0; i < noperations; i++) {
    if ((operations[i].flags & CREATES) != 0)
      assert_err(&operations[i],
                 send_and_wait(&operations[i], path_here("/a", ""), NULL),
                 LK_ERR_QUOTA_EXCEEDED, "with a quota");
  }
  lk_op grow = lk_op_set(path_here("/a", "/kid"), lk_text("more"), -1);

  assert_error_is(set(here, grow.path, grow.data, -1), LK_ERR_QUOTA_EXCEEDED);
  assert_error_is(multi(here, &grow, 1), LK_ERR_QUOTA_EXCEEDED);
  ck_assert_str_eq(tree_of("/a"), test_node_tree);
  fixture_tear_down();
}
END_TEST

/* ---- identities --------------------------------------------------------- */

START_TEST(add_auth_is_repeated_on_the_next_connection)
{
  fixture_set_up(with_chroot(_i));
  wire_break_at_request(wire_of_here, AUTH, LOSE_REQUEST);
  assert_error_is(add_auth(here, "digest", "ann:x"), 0);
  ck_assert(wire_has_broken(wire_of_here));
  ck_assert_uint_eq(lk_client_connection(here), 2);
  wire_break_at_request(wire_of_here, AUTH, LOSE_REPLY);
  assert_error_is(add_auth(here, "digest", "bea:x"), 0);
  ck_assert(wire_has_broken(wire_of_here));
  ck_assert_uint_eq(lk_client_connection(here), 3);
  if (server_has(SERVER_WHO_AM_I)) {
    reset_last_reply();
    assert_error_is(wait_for_completion(lk_who_am_i(here, NULL, on_ids, NULL)),
                    0);
    ck_assert_ptr_nonnull(strstr(shown_text(), "digest\" user=\"ann"));
    ck_assert_ptr_nonnull(strstr(shown_text(), "digest\" user=\"bea"));
  }
  assert_error_is(add_auth(here, "nosuch", "x"), LK_ERR_AUTH_FAILED);
  fixture_tear_down();
}
END_TEST

/* ---- requests that a server does not have ------------------------------- */

START_TEST(request_of_newer_servers_is_not_implemented)
{
  const operation *o = missing_operation_of(_i);

  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  assert_err(o, send_and_wait(o, path_here("/a", ""), NULL),
             LK_ERR_UNIMPLEMENTED, "missing");
  wait_for_state(here, LK_STATE_SUSPENDED);
  wait_for_state(here, LK_STATE_CONNECTED);
  assert_error_is(sync_with(here, "/"), 0);
  fixture_tear_down();
}
END_TEST

/* The server replies with UNIMPLEMENTED and closes the connection. The client
 * does not send a request with this opcode to this server again. */
START_TEST(unknown_opcode_costs_one_connection)
{
  const operation *o = operation_of(_i);
  const char *a;

  fixture_set_up(with_chroot(_i));
  make_test_node("/a");
  a = path_here("/a", "");
  wire_replace_opcode(wire_of_here, o->op);
  assert_err(o, send_and_wait(o, a, NULL), LK_ERR_UNIMPLEMENTED, "unknown");
  wait_for_state(here, LK_STATE_SUSPENDED);
  reset_last_reply();
  assert_err(o, o->send(here, a, NULL), 0, "queued without a connection");
  assert_err(o, wait_for_completion(0), LK_ERR_UNIMPLEMENTED,
             "after the reconnect");
  assert_err(o, o->send(here, a, NULL), LK_ERR_UNIMPLEMENTED, "again");
  ck_assert_uint_eq(lk_client_connection(here), 2);
  wire_replace_opcode(wire_of_here, NO_OPCODE);
  ck_assert_str_eq(tree_of("/a"), test_node_tree);
  fixture_tear_down();
}
END_TEST

static int end_err; /* the error of the event LK_EVENT_ENDED */

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  end_err = event->err;
  *(bool *)arg = event->type == LK_EVENT_ENDED;
}

START_TEST(persistent_watch_ends_at_a_server_without_set_watches2)
{
  bool has_ended = false;
  lk_call call = {
      .size = sizeof call, .on_event = on_event, .watch_arg = &has_ended};

  fixture_set_up(with_chroot(_i));
  reset_last_reply();
  assert_error_is(wait_for_completion(lk_add_watch(
                      here, "/", LK_WATCH_RECURSIVE, &call, on_ended, NULL)),
                  0);
  wire_replace_opcode(wire_of_here, SET_WATCHES2);
  wire_break(wire_of_here);
  wire_mend(wire_of_here);
  wait_until(&has_ended);
  assert_error_is(end_err, LK_ERR_UNIMPLEMENTED);
  assert_error_is(sync_with(here, "/"), 0);
  fixture_tear_down();
}
END_TEST

/* ---- configuration ------------------------------------------------------ */

static int reconfig(const char *members, const char *leaving, int64_t version)
{
  lk_reconfiguration change = {.size = sizeof change,
                               .members = members,
                               .leaving = leaving,
                               .version = version};

  reset_last_reply();
  return wait_for_completion(lk_reconfig(here, &change, NULL, on_config, NULL));
}

START_TEST(standalone_server_refuses_reconfig)
{
  fixture_set_up(with_chroot(_i));
  assert_error_is(reconfig(NULL, "1", -1), LK_ERR_UNIMPLEMENTED);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  fixture_tear_down();
}
END_TEST

static void set_config_acl(const lk_acls *acl)
{
  reset_last_reply();
  assert_error_is(
      wait_for_completion(lk_set_acl(there, "/zookeeper/config", acl, -1, NULL,
                                     on_version, NULL)),
      0);
}

START_TEST(configuration_read_needs_permission)
{
  fixture_set_up(with_chroot(_i));
  ck_assert_int_eq(add_auth(there, "digest", "super:secret"), 0);
  set_config_acl(lk_acl_creator());
  ck_assert_int_eq(sync_with(here, "/"), 0);
  reset_last_reply();
  assert_error_is(
      wait_for_completion(lk_get_config(here, NULL, on_config, NULL)),
      LK_ERR_NO_AUTH);
  set_config_acl(lk_acl_read());
  fixture_tear_down();
}
END_TEST

START_TEST(refused_reconfig_names_its_cause)
{
  fixture_set_up(with_chroot(_i));
  assert_error_is(reconfig(NULL, "1", -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "super:secret"), 0);
  assert_error_is(reconfig(NULL, "1", 1), LK_ERR_BAD_VERSION);
  assert_error_is(reconfig("what is this", NULL, -1), LK_ERR_BAD_ARGUMENT);
  assert_error_is(reconfig(NULL, "one", -1), LK_ERR_MARSHALLING);
  /* A new ensemble of servers 1, 8 and 9, of which only server 1 exists, has
     no quorum. */
  assert_error_is(reconfig("server.1=127.0.0.1:1:2:participant;127.0.0.1:3,"
                           "server.8=127.0.0.1:4:5:participant;127.0.0.1:6,"
                           "server.9=127.0.0.1:7:8:participant;127.0.0.1:9",
                           NULL, -1),
                  LK_ERR_NEW_CONFIG_NO_QUORUM);
  assert_error_is(reconfig("server.1=x", "1", -1), LK_ERR_BAD_ARGUMENT);
  assert_error_is(reconfig(NULL, NULL, -1), LK_ERR_BAD_ARGUMENT);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  fixture_tear_down();
}
END_TEST

/* Send a command to script/server for each follower: "stop" or "cont". While
 * the followers are stopped, the leader commits nothing. */
static void command_followers(int leader, const char *command)
{
  for (int n = 1; n <= 3; n++) {
    if (n != leader)
      server_ask(&zk, "%s %d", command, n);
  }
}

START_TEST(second_reconfig_at_once_is_refused)
{
  const lk_reconfiguration change = {
      .size = sizeof change, .members = all_members(), .version = -1};
  const int leader = server_in_mode(&zk, "leader");
  completion first_reconfig = {0};
  lk_client *c;

  fixture_set_up(WITHOUT_CHROOT);
  c = client_to(leader);
  ck_assert_int_eq(add_auth(c, "digest", "super:secret"), 0);
  command_followers(leader, "stop");
  reset_last_reply();
  ck_assert_int_eq(lk_reconfig(c, &change, NULL, on_get, &first_reconfig), 0);
  ck_assert_int_eq(lk_reconfig(c, &change, NULL, on_config, NULL), 0);
  test_driver_turn(0); /* sends both requests */
  while (server_number(server_address(leader), "zk_outstanding_requests") < 2)
    usleep(1000);
  command_followers(leader, "cont");
  wait_until(&last_reply.done);
  assert_error_is(last_reply.err, LK_ERR_RECONFIG_IN_PROGRESS);
  assert_error_is(first_reconfig.err, 0);
  close_client(c);
  lk_client_free(c);
  fixture_tear_down();
}
END_TEST

TCase *error_tests(bool ensemble)
{
  TCase *t = tcase_create("errors");
  int count = turns_of_operations(ensemble);

  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, missing_or_denied_node_ends_with_its_error, 0, count);
  add_test_without_and_with_chroot(t, failed_create_names_its_cause);
  add_test_without_and_with_chroot(t, wrong_version_or_access_list_is_an_error);
  add_test_without_and_with_chroot(
      t, multi_ends_with_the_error_of_its_failed_operation);
  if (server_has(SERVER_QUOTAS_ENFORCED))
    add_test_without_and_with_chroot(t, exceeded_quota_is_an_error);
  tcase_add_loop_test(t, request_of_newer_servers_is_not_implemented, 0,
                      turns_of_missing_operations());
  add_test_without_and_with_chroot(t,
                                   add_auth_is_repeated_on_the_next_connection);
  add_test_without_and_with_chroot(t, configuration_read_needs_permission);
  if (ensemble) {
    add_test_without_and_with_chroot(t, refused_reconfig_names_its_cause);
    tcase_add_test(t, second_reconfig_at_once_is_refused);
    return t;
  }
  tcase_add_loop_test(t, invalid_arguments_are_refused_before_sending, 0,
                      count);
  tcase_add_loop_test(t, unknown_opcode_costs_one_connection, 0, count);
  if (server_has(SERVER_PERSISTENT_WATCHES))
    add_test_without_and_with_chroot(
        t, persistent_watch_ends_at_a_server_without_set_watches2);
  add_test_without_and_with_chroot(t, standalone_server_refuses_reconfig);
  return t;
}
