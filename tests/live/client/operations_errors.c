/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Every error that the headers name for a request. */

#include "live/client/operations.h"

#include <latchkey/nodes.h>
#include <stdio.h>
#include <string.h>

/* ---- of all requests ------------------------------------------------------
 */

static void assert_err(const operation *o, int err, int expected,
                       const char *what)
{
  ck_assert_msg(err == expected, "%s, %s: %s (%d), not %s", o->name, what,
                lk_error_text(err), err, lk_error_text(expected));
}

/* A node and one below it where bob alone may do anything. */
static void lock_up(const char *node)
{
  ck_assert_int_eq(add_auth(there, "digest", "bob:secret"), 0);
  ck_assert_int_eq(create_as(there, beyond(node, ""), &lk_acl_creator, 0), 0);
  ck_assert_int_eq(create_as(there, beyond(node, "/kid"), &lk_acl_creator, 0),
                   0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

START_TEST(what_is_missing_or_denied_is_told)
{
  const operation *o = operation_of(_i);

  place_enter(with_chroot(_i));
  assert_err(o, do_ask(o, at("/none", ""), NULL), o->missing, "no such node");
  lock_up("/locked");
  assert_err(o, do_ask(o, at("/locked", ""), NULL), o->denied, "denied");
  ck_assert_uint_eq(lk_client_connection(here), 1);
  place_leave();
}
END_TEST

START_TEST(what_cannot_be_meant_is_not_sent)
{
  const lk_call unset = {.size = 0};
  const lk_call late = {.size = sizeof late, .timeout_ms = -2};
  const lk_call twice = {.size = sizeof twice, .repeat = true};
  const operation *o = operation_of(_i);

  place_enter(with_chroot(_i));
  if ((o->flags & NO_NODE_IN) == 0)
    assert_err(o, do_ask(o, "relative", NULL), LK_ERR_BAD_PATH, "path");
  assert_err(o, do_ask(o, at("/a", ""), &unset), LK_ERR_BAD_ARGUMENT, "size");
  assert_err(o, do_ask(o, at("/a", ""), &late), LK_ERR_DEADLINE, "timeout");
  if ((o->flags & WRITES) != 0)
    assert_err(o, do_ask(o, at("/a", ""), &twice), LK_ERR_BAD_ARGUMENT,
               "repeat");
  close_client(here);
  assert_err(o, do_ask(o, at("/a", ""), NULL), LK_ERR_CLOSED, "closed");
  place_leave();
}
END_TEST

/* ---- of some ---------------------------------------------------------------
 */

static void assert_is(int err, int expected)
{
  ck_assert_msg(err == expected, "%s, not %s", lk_error_text(err),
                lk_error_text(expected));
}

START_TEST(what_is_in_the_way_of_a_new_node_is_told)
{
  static const lk_acls nobody;
  lk_acl unknown = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};
  lk_acls odd = {&unknown, 1};

  place_enter(_i == 1);
  furnish("/a");
  for (size_t i = 0; i < noperations; i++) {
    const operation *o = &operations[i];

    if ((o->flags & CREATES) == 0)
      continue;
    assert_err(o, do_ask(o, at("/a", "/mine"), NULL),
               LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, "below an ephemeral one");
    assert_err(o, do_ask(o, at("/a", ""), NULL), 0, "new");
    assert_err(o, do_ask(o, at("/a", ""), NULL),
               (o->flags & NUMBERS) != 0 ? 0 : LK_ERR_NODE_EXISTS, "again");
    erase(here, at("/a", "/new"), -1);
  }
  assert_is(create_as(here, at("/b", ""), &nobody, 0), LK_ERR_INVALID_ACL);
  assert_is(create_as(here, at("/b", ""), &odd, 0), LK_ERR_INVALID_ACL);
  assert_is(create_as(here, at("/b", ""), &lk_acl_creator, 0),
            LK_ERR_INVALID_ACL);
  assert_is(create(here, at("/b", ""), "", 8), LK_ERR_BAD_ARGUMENT);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  place_leave();
}
END_TEST

static int set_acl(const char *path, const lk_acls *acl, int32_t version)
{
  memset(&said, 0, sizeof said);
  return ended(lk_set_acl(here, path, acl, version, NULL, on_version, NULL));
}

START_TEST(another_version_is_told)
{
  static const lk_acls nobody;
  const char *a;

  place_enter(_i == 1);
  furnish("/a");
  a = at("/a", "");
  assert_is(set(here, a, lk_text("x"), 1), LK_ERR_BAD_VERSION);
  assert_is(set(here, a, lk_text("x"), -2), LK_ERR_BAD_ARGUMENT);
  assert_is(erase(here, a, 1), LK_ERR_BAD_VERSION);
  assert_is(erase(here, a, -2), LK_ERR_BAD_ARGUMENT);
  assert_is(erase(here, a, 0), LK_ERR_NOT_EMPTY);
  assert_is(set_acl(a, &lk_acl_open, 1), LK_ERR_BAD_VERSION);
  assert_is(set_acl(a, &lk_acl_open, -2), LK_ERR_BAD_ARGUMENT);
  assert_is(set_acl(a, &nobody, 0), LK_ERR_INVALID_ACL);
  assert_is(set_acl(a, NULL, 0), LK_ERR_BAD_ARGUMENT);
  ck_assert_str_eq(picture("/a"), furniture);
  place_leave();
}
END_TEST

/* Each part can be the culprit; nothing is done then. */
START_TEST(a_multi_ends_with_the_error_of_its_culprit)
{
  place_enter(_i == 1);
  furnish("/a");
  const char *a = at("/a", ""), *kid = at("/a", "/kid");
  const char *below_mine = at("/a", "/mine/x"), *none = at("/none/x", "");
  const struct {
    lk_op op;
    int err;
  } culprits[] = {
      {lk_op_create(kid, lk_text(""), NULL, 0), LK_ERR_NODE_EXISTS},
      {lk_op_create2(none, lk_text(""), NULL, 0), LK_ERR_NO_NODE},
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

  for (size_t i = 0; i < sizeof culprits / sizeof culprits[0]; i++) {
    lk_op ops[] = {lk_op_set(a, lk_text("two"), 0), culprits[i].op,
                   lk_op_delete(kid, 0)};

    assert_is(multi(here, ops, 3), culprits[i].err);
    ck_assert_uint_eq(last.count, 3);
    assert_is(last.results[0].err, 0);
    assert_is(last.results[1].err, culprits[i].err);
    assert_is(last.results[2].err, LK_ERR_RUNTIME_INCONSISTENCY);
  }
  ck_assert_str_eq(picture("/a"), furniture);
  place_leave();
}
END_TEST

/* ---- quotas ----------------------------------------------------------------
 */

static void put_deep(const char *path, const char *data)
{
  memset(&last, 0, sizeof last);
  ck_assert_int_eq(lk_create_with_parents(there, path, lk_text(data), NULL, 0,
                                          NULL, NULL, on_created, &last),
                   0);
  wait_until(&last.done);
  ck_assert_int_eq(last.err, 0);
}

/* As many nodes and bytes as there are, and no more. */
static void limit(const char *node)
{
  char path[1024];

  snprintf(path, sizeof path, "/zookeeper/quota%s/zookeeper_limits",
           beyond(node, ""));
  put_deep(path, "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=3");
  snprintf(path, sizeof path, "/zookeeper/quota%s/zookeeper_stats",
           beyond(node, ""));
  put_deep(path, "count=0,bytes=0");
  /* the leader goes by what it has applied itself */
  for (int i = 0; create(here, at(node, "/probe"), "", 0) == 0; i++) {
    ck_assert_int_lt(i, 1000);
    ck_assert_int_eq(erase(here, at(node, "/probe"), -1), 0);
  }
}

START_TEST(a_quota_that_is_used_up_is_told)
{
  place_enter(_i == 1);
  furnish("/a");
  limit("/a");
  for (size_t i = 0; i < noperations; i++) {
    if ((operations[i].flags & CREATES) != 0)
      assert_err(&operations[i], do_ask(&operations[i], at("/a", ""), NULL),
                 LK_ERR_QUOTA_EXCEEDED, "quota");
  }
  lk_op grow = lk_op_set(at("/a", "/kid"), lk_text("more"), -1);

  assert_is(set(here, grow.path, grow.data, -1), LK_ERR_QUOTA_EXCEEDED);
  assert_is(multi(here, &grow, 1), LK_ERR_QUOTA_EXCEEDED);
  ck_assert_str_eq(picture("/a"), furniture);
  place_leave();
}
END_TEST

/* ---- identities -------------------------------------------------------------
 */

START_TEST(an_identity_is_given_on_whatever_connection)
{
  place_enter(_i == 1);
  for (int answered = 0; answered < 2; answered++) {
    const char *who = answered == 0 ? "ann:x" : "bea:x";

    wire_break_at(near, 100, answered == 1);
    assert_is(add_auth(here, "digest", who), 0);
    ck_assert(wire_has_broken(near));
    ck_assert_uint_eq(lk_client_connection(here), (uint64_t)answered + 2);
  }
  memset(&said, 0, sizeof said);
  assert_is(ended(lk_who_am_i(here, NULL, on_ids, NULL)), 0);
  ck_assert_ptr_nonnull(strstr(said.text, "digest:ann"));
  ck_assert_ptr_nonnull(strstr(said.text, "digest:bea"));
  assert_is(add_auth(here, "nosuch", "x"), LK_ERR_AUTH_FAILED);
  place_leave();
}
END_TEST

/* ---- what a server does not know --------------------------------------------
 */

/* It says so, and hangs up; the client does not ask it again. */
START_TEST(an_unknown_request_costs_one_connection)
{
  const operation *o = operation_of(_i);
  const char *a;

  place_enter(with_chroot(_i));
  furnish("/a");
  a = at("/a", "");
  wire_disguise(near, o->op);
  assert_err(o, do_ask(o, a, NULL), LK_ERR_UNIMPLEMENTED, "unknown");
  wait_for_state(here, LK_STATE_SUSPENDED);
  memset(&said, 0, sizeof said);
  assert_err(o, o->ask(here, a, NULL), 0, "without a connection");
  assert_err(o, ended(0), LK_ERR_UNIMPLEMENTED, "waiting");
  assert_err(o, o->ask(here, a, NULL), LK_ERR_UNIMPLEMENTED, "again");
  ck_assert_uint_eq(lk_client_connection(here), 2);
  wire_disguise(near, 0);
  ck_assert_str_eq(picture("/a"), furniture);
  place_leave();
}
END_TEST

static lk_event last_event;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  last_event = *event;
  *(bool *)arg = event->type == LK_EVENT_ENDED;
}

START_TEST(a_watch_that_stays_ends_where_it_is_unknown)
{
  bool is_over = false;
  lk_call call = {
      .size = sizeof call, .on_event = on_event, .watch_arg = &is_over};

  place_enter(_i == 1);
  memset(&said, 0, sizeof said);
  assert_is(
      ended(lk_add_watch(here, "/", LK_WATCH_RECURSIVE, &call, on_ended, NULL)),
      0);
  wire_disguise(near, 105);
  wire_break(near);
  wire_mend(near);
  wait_until(&is_over);
  assert_is(last_event.err, LK_ERR_UNIMPLEMENTED);
  assert_is(sync_with(here, "/"), 0);
  place_leave();
}
END_TEST

/* ---- configuration ----------------------------------------------------------
 */

static int reconfig(const char *members, const char *leaving, int64_t version)
{
  lk_reconfiguration change = {.size = sizeof change,
                               .members = members,
                               .leaving = leaving,
                               .version = version};

  memset(&said, 0, sizeof said);
  return ended(lk_reconfig(here, &change, NULL, on_config, NULL));
}

START_TEST(a_server_alone_has_nothing_to_change)
{
  place_enter(_i == 1);
  assert_is(reconfig(NULL, "1", -1), LK_ERR_UNIMPLEMENTED);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  place_leave();
}
END_TEST

static void set_config_acl(const lk_acls *acl)
{
  memset(&said, 0, sizeof said);
  assert_is(ended(lk_set_acl(there, "/zookeeper/config", acl, -1, NULL,
                             on_version, NULL)),
            0);
}

START_TEST(the_configuration_may_be_denied)
{
  place_enter(_i == 1);
  ck_assert_int_eq(add_auth(there, "digest", "super:secret"), 0);
  set_config_acl(&lk_acl_creator);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  memset(&said, 0, sizeof said);
  assert_is(ended(lk_get_config(here, NULL, on_config, NULL)), LK_ERR_NO_AUTH);
  set_config_acl(&lk_acl_read);
  place_leave();
}
END_TEST

START_TEST(a_change_of_the_ensemble_may_be_refused)
{
  place_enter(_i == 1);
  assert_is(reconfig(NULL, "1", -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "super:secret"), 0);
  assert_is(reconfig(NULL, "1", 1), LK_ERR_BAD_VERSION);
  assert_is(reconfig("what is this", NULL, -1), LK_ERR_BAD_ARGUMENT);
  assert_is(reconfig(NULL, "one", -1), LK_ERR_MARSHALLING);
  /* two of whom nobody has heard */
  assert_is(reconfig("server.1=127.0.0.1:1:2:participant;127.0.0.1:3,"
                     "server.8=127.0.0.1:4:5:participant;127.0.0.1:6,"
                     "server.9=127.0.0.1:7:8:participant;127.0.0.1:9",
                     NULL, -1),
            LK_ERR_NEW_CONFIG_NO_QUORUM);
  assert_is(reconfig("server.1=x", "1", -1), LK_ERR_BAD_ARGUMENT);
  assert_is(reconfig(NULL, NULL, -1), LK_ERR_BAD_ARGUMENT);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  place_leave();
}
END_TEST

/* While no follower answers the leader nothing is committed. */
static void stop_followers(int leader, const char *word)
{
  for (int n = 1; n <= 3; n++) {
    if (n != leader)
      server_ask(&zk, "%s %d", word, n);
  }
}

START_TEST(one_change_at_a_time)
{
  const lk_reconfiguration change = {
      .size = sizeof change, .members = all_members(), .version = -1};
  const int leader = server_in_mode(&zk, "leader");
  answer first = {0};
  lk_client *c;

  place_enter(false);
  c = client_to(leader);
  ck_assert_int_eq(add_auth(c, "digest", "super:secret"), 0);
  stop_followers(leader, "stop");
  memset(&said, 0, sizeof said);
  ck_assert_int_eq(lk_reconfig(c, &change, NULL, on_get, &first), 0);
  ck_assert_int_eq(lk_reconfig(c, &change, NULL, on_config, NULL), 0);
  ev_run(loop, EVRUN_NOWAIT); /* they leave */
  stop_followers(leader, "cont");
  assert_is(ended(0), LK_ERR_RECONFIG_IN_PROGRESS);
  assert_is(first.err, 0);
  close_client(c);
  lk_client_free(c);
  place_leave();
}
END_TEST

TCase *error_tests(bool ensemble)
{
  TCase *t = tcase_create("errors");
  int count = 2 * (int)operations_in(ensemble);

  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, what_is_missing_or_denied_is_told, 0, count);
  tcase_add_loop_test(t, what_is_in_the_way_of_a_new_node_is_told, 0, 2);
  tcase_add_loop_test(t, another_version_is_told, 0, 2);
  tcase_add_loop_test(t, a_multi_ends_with_the_error_of_its_culprit, 0, 2);
  tcase_add_loop_test(t, a_quota_that_is_used_up_is_told, 0, 2);
  tcase_add_loop_test(t, an_identity_is_given_on_whatever_connection, 0, 2);
  tcase_add_loop_test(t, the_configuration_may_be_denied, 0, 2);
  if (ensemble) {
    tcase_add_loop_test(t, a_change_of_the_ensemble_may_be_refused, 0, 2);
    tcase_add_test(t, one_change_at_a_time);
    return t;
  }
  tcase_add_loop_test(t, what_cannot_be_meant_is_not_sent, 0, count);
  tcase_add_loop_test(t, an_unknown_request_costs_one_connection, 0, count);
  tcase_add_loop_test(t, a_watch_that_stays_ends_where_it_is_unknown, 0, 2);
  tcase_add_loop_test(t, a_server_alone_has_nothing_to_change, 0, 2);
  return t;
}
