/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Every operation of client.h against a real server, without a chroot and with
 * one. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creating ----------------------------------------------------------- */

START_TEST(each_kind_of_node_is_created)
{
  static const struct {
    int flags;
    const char *path;
    const char *created; /* the path in the reply */
    bool is_ephemeral;
  } kinds[] = {
      {LK_PERSISTENT, "/d/p", "/d/p", false},
      {LK_EPHEMERAL, "/d/e", "/d/e", true},
      {LK_SEQUENTIAL, "/d/s-", "/d/s-0000000002", false},
      {LK_SEQUENTIAL | LK_EPHEMERAL, "/d/es-", "/d/es-0000000003", true},
      {LK_SEQUENTIAL, "/d/", "/d/0000000004", false},
      {LK_CONTAINER, "/d/c", "/d/c", false},
  };

  world_enter(_i);
  ck_assert_int_eq(create(here, "/d", "", 0), 0);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    int64_t owner = kinds[i].is_ephemeral ? lk_client_session(here).id : 0;

    ck_assert_int_eq(create(here, kinds[i].path, "12", kinds[i].flags), 0);
    ck_assert_str_eq(last.path, kinds[i].created);
    ck_assert(last.has_stat);
    ck_assert_int_eq(last.stat.ephemeral_owner, owner);
    ck_assert_int_eq(last.stat.data_length, 2);
    ck_assert_int_eq(last.stat.czxid, last.zxid);
    ck_assert_int_eq(last.evidence, LK_EVIDENCE_COMMIT);
    ck_assert_int_eq(exists(there, full(kinds[i].created), NULL), 0);
    ck_assert_int_eq(last.stat.ephemeral_owner, owner);
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    ck_assert_int_eq(erase(here, kinds[i].created, -1), 0);
  ck_assert_int_eq(erase(here, "/d", -1), 0);
}
END_TEST

START_TEST(plain_create_gives_the_path_alone)
{
  world_enter(_i);
  memset(&last, 0, sizeof last);
  ck_assert_int_eq(lk_create(here, "/plain-", lk_text("x"), NULL, LK_SEQUENTIAL,
                             NULL, on_created, &last),
                   0);
  wait_until(&last.done);
  ck_assert_int_eq(last.err, 0);
  ck_assert(!last.has_stat);
  ck_assert_uint_eq(strlen(last.path), strlen("/plain-0123456789"));
  ck_assert_int_eq(get(there, full(last.path), NULL), 0);
  ck_assert_str_eq(last.data, "x");
}
END_TEST

START_TEST(container_is_deleted_after_its_last_child)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/box", NULL, LK_CONTAINER), 0);
  ck_assert_int_eq(create(here, "/box/child", NULL, 0), 0);
  ck_assert_int_eq(erase(here, "/box/child", -1), 0);
  while (exists(here, "/box", NULL) == 0)
    ev_sleep(.02);
  ck_assert_int_eq(last.err, LK_ERR_NO_NODE);
}
END_TEST

START_TEST(refused_create_names_its_cause)
{
  static const lk_acls nobody = {NULL, 0};
  lk_acl entry = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};
  lk_acls odd = {&entry, 1};

  world_enter(_i);
  ck_assert_int_eq(create(here, "/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(here, "/x", "", 0), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(create(here, "/x/y", "", 0),
                   LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  ck_assert_int_eq(create(here, "/no/y", "", 0), LK_ERR_NO_NODE);
  ck_assert_int_eq(create_as(here, "/y", &nobody, 0), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create_as(here, "/y", &odd, 0), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create_as(here, "/y", &lk_acl_creator, 0),
                   LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create(here, "/y", "", 8), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create(here, "/y", "", -1), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create(here, "y", "", 0), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/y/", "", 0), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/a//b", "", 0), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/a/../b", "", 0), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/\x01", "", 0), LK_ERR_BAD_PATH);
  /* None of the errors has cost the connection. */
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

/* ---- data --------------------------------------------------------------- */

START_TEST(null_and_empty_data_differ)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/null-", NULL, LK_SEQUENTIAL), 0);
  const char *path = strdup(last.path);
  ck_assert_int_eq(get(here, path, NULL), 0);
  ck_assert(last.is_null);
  ck_assert_int_eq(set(here, path, lk_text(""), 0), 0);
  ck_assert_int_eq(last.stat.version, 1);
  ck_assert_int_eq(get(here, path, NULL), 0);
  ck_assert(!last.is_null);
  ck_assert_uint_eq(last.len, 0);
  ck_assert_int_eq(set(here, path, lk_text(NULL), 1), 0);
  ck_assert_int_eq(get(here, path, NULL), 0);
  ck_assert(last.is_null);
  ck_assert_int_eq(last.stat.version, 2);
  ck_assert_int_eq(set(here, path, lk_bytes_of("\0\xff\0", 3), -1), 0);
  ck_assert_int_eq(get(here, path, NULL), 0);
  ck_assert_uint_eq(last.len, 3);
  ck_assert_mem_eq(last.data, "\0\xff\0", 3);
  ck_assert_int_eq(erase(here, path, -1), 0);
  free((char *)(uintptr_t)path);
}
END_TEST

START_TEST(versions_are_compared)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/v", "0", LK_EPHEMERAL), 0);
  ck_assert_int_eq(set(here, "/v", lk_text("1"), 0), 0);
  ck_assert_int_eq(set(here, "/v", lk_text("2"), 0), LK_ERR_BAD_VERSION);
  ck_assert_int_eq(last.evidence, LK_EVIDENCE_CONTACT);
  ck_assert_int_eq(erase(here, "/v", 0), LK_ERR_BAD_VERSION);
  ck_assert_int_eq(get(here, "/v", NULL), 0);
  ck_assert_str_eq(last.data, "1");
  ck_assert_int_eq(erase(here, "/v", 1), 0);
  ck_assert_int_eq(set(here, "/v", lk_text(""), -2), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(erase(here, "/v", -2), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(requests_for_a_missing_node_end_with_no_node)
{
  world_enter(_i);
  ck_assert_int_eq(exists(here, "/no", NULL), LK_ERR_NO_NODE);
  ck_assert_int_eq(get(here, "/no", NULL), LK_ERR_NO_NODE);
  ck_assert_int_eq(set(here, "/no", lk_text("x"), -1), LK_ERR_NO_NODE);
  ck_assert_int_eq(children(here, "/no", NULL), LK_ERR_NO_NODE);
  ck_assert_int_eq(erase(here, "/no", -1), LK_ERR_NO_NODE);
  ck_assert_int_eq(sync_with(here, "/no"), 0);
  ck_assert_int_eq(last.evidence, LK_EVIDENCE_LEADER);
}
END_TEST

START_TEST(children_are_listed)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/p", "", 0), 0);
  ck_assert_int_eq(children(here, "/p", NULL), 0);
  ck_assert_uint_eq(last.count, 0);
  ck_assert_int_eq(create(here, "/p/one", "", 0), 0);
  ck_assert_int_eq(create(here, "/p/two", "", 0), 0);
  ck_assert_int_eq(children(here, "/p", NULL), 0);
  ck_assert_uint_eq(last.count, 2);
  ck_assert_int_eq(last.stat.num_children, 2);
  ck_assert_int_eq(strcmp(last.names[0], "one") == 0
                       ? strcmp(last.names[1], "two")
                       : strcmp(last.names[0], "two") +
                             strcmp(last.names[1], "one"),
                   0);
  ck_assert_int_eq(erase(here, "/p", -1), LK_ERR_NOT_EMPTY);
  ck_assert_int_eq(erase(here, "/p/one", -1), 0);
  ck_assert_int_eq(erase(here, "/p/two", -1), 0);
  ck_assert_int_eq(erase(here, "/p", -1), 0);
}
END_TEST

START_TEST(root_is_a_node)
{
  world_enter(_i);
  ck_assert_int_eq(exists(here, "/", NULL), 0);
  ck_assert_int_eq(children(here, "/", NULL), 0);
  ck_assert(_i ? last.count == 0 : last.count > 1);
  ck_assert_int_eq(create(here, "/", "", 0), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(set(here, "/", lk_text("root"), -1), 0);
  ck_assert_int_eq(get(there, _i ? chroot_path : "/", NULL), 0);
  ck_assert_str_eq(last.data, "root");
}
END_TEST

START_TEST(names_need_not_be_ascii)
{
  static const char path[] = "/Schl\xc3\xbcssel \xe9\x8d\xb5";

  world_enter(_i);
  ck_assert_int_eq(create(here, path, "", LK_EPHEMERAL), 0);
  ck_assert_str_eq(last.path, path);
  ck_assert_int_eq(erase(here, path, -1), 0);
}
END_TEST

/* ---- multi -------------------------------------------------------------- */

START_TEST(multi_executes_all_operations)
{
  lk_op ops[] = {
      lk_op_create("/m", lk_text("0"), NULL, 0),
      lk_op_create("/m/s-", lk_text(NULL), NULL, LK_SEQUENTIAL),
      lk_op_set("/m", lk_text("1"), 0),
      lk_op_check("/m", 1),
      lk_op_delete("/m/s-0000000000", -1),
      lk_op_create("/m/e", lk_text(""), NULL, LK_EPHEMERAL),
  };

  world_enter(_i);
  ops[5].type = LK_OP_CREATE2;
  ck_assert_int_eq(multi(here, ops, 6), 0);
  ck_assert_uint_eq(last.count, 6);
  ck_assert_str_eq(last.paths[0], "/m");
  ck_assert_str_eq(last.paths[1], "/m/s-0000000000");
  ck_assert_int_eq(last.versions[2], 1);
  ck_assert_ptr_null(last.results[3].path);
  ck_assert_ptr_null(last.results[4].path);
  ck_assert_str_eq(last.paths[5], "/m/e");
  for (size_t i = 0; i < 6; i++)
    ck_assert_int_eq(last.results[i].err, 0);
  ck_assert_int_eq(last.evidence, LK_EVIDENCE_COMMIT);
  int64_t zxid = last.zxid;
  ck_assert_int_eq(exists(here, "/m/e", NULL), 0);
  ck_assert_int_eq(last.stat.czxid, zxid);
  ck_assert_int_eq(get(there, full("/m"), NULL), 0);
  ck_assert_str_eq(last.data, "1");
  ck_assert_int_eq(last.stat.czxid, zxid);
  ck_assert_int_eq(erase(here, "/m/e", -1), 0);
  ck_assert_int_eq(erase(here, "/m", -1), 0);
}
END_TEST

START_TEST(failed_multi_names_the_failed_operation)
{
  lk_op ops[] = {
      lk_op_create("/f", lk_text(""), NULL, 0),
      lk_op_check("/f", 7),
      lk_op_delete("/f", -1),
  };

  world_enter(_i);
  ck_assert_int_eq(multi(here, ops, 3), LK_ERR_BAD_VERSION);
  ck_assert_uint_eq(last.count, 3);
  ck_assert_int_eq(last.results[0].err, 0);
  ck_assert_ptr_null(last.results[0].path);
  ck_assert_int_eq(last.results[1].err, LK_ERR_BAD_VERSION);
  ck_assert_int_eq(last.results[2].err, LK_ERR_RUNTIME_INCONSISTENCY);
  ck_assert_int_eq(exists(here, "/f", NULL), LK_ERR_NO_NODE);
  ops[1] = lk_op_check("/absent", -1);
  ck_assert_int_eq(multi(here, ops, 3), LK_ERR_NO_NODE);
  ck_assert_int_eq(last.results[1].err, LK_ERR_NO_NODE);
}
END_TEST

START_TEST(empty_multi_succeeds)
{
  world_enter(_i);
  ck_assert_int_eq(multi(here, NULL, 0), 0);
  ck_assert_uint_eq(last.count, 0);
}
END_TEST

START_TEST(multi_with_an_invalid_operation_is_not_sent)
{
  lk_op ops[] = {lk_op_check("/", -1), lk_op_delete("bad", -1)};

  world_enter(_i);
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_PATH);
  ops[1] = lk_op_delete("/x", -5);
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ops[1] = lk_op_create("/x", lk_text(""), NULL, 77);
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ops[1].type = 11;
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(multi(here, ops, 1), 0);
}
END_TEST

/* ---- ends --------------------------------------------------------------- */

START_TEST(closing_ends_the_session)
{
  completion early = {0};
  lk_client *c;

  world_enter(_i);
  ck_assert_int_eq(create(here, "/mine", "", LK_EPHEMERAL), 0);
  c = here;
  ck_assert_int_eq(lk_create2(c, "/late-", lk_text(""), NULL,
                              LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created,
                              &early),
                   0);
  ck_assert_int_eq(close_client(c), 0);
  ck_assert(early.done);
  ck_assert_int_eq(early.err, 0);
  ck_assert_uint_lt(early.order, last.order);
  ck_assert_int_eq(lk_client_state(c), LK_STATE_CLOSED);
  ck_assert_int_eq(get(c, "/", NULL), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_client_close(c, NULL, NULL), LK_ERR_CLOSED);
  ck_assert_int_eq(exists(there, full("/mine"), NULL), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(there, full(early.path), NULL), LK_ERR_NO_NODE);
}
END_TEST

START_TEST(freeing_completes_outstanding_requests)
{
  completion a = {0}, b = {0};

  world_enter(_i);
  ck_assert_int_eq(exists(here, "/", NULL), 0);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &a), 0);
  ck_assert_int_eq(lk_delete(here, "/none", -1, NULL, on_done, &b), 0);
  lk_client_free(here);
  here = NULL;
  ck_assert(a.done && b.done);
  ck_assert_int_eq(a.err, LK_ERR_CLOSED);
  ck_assert_int_eq(b.err, LK_ERR_NOT_SENT);
}
END_TEST

static void free_it(lk_client *c, int err, void *arg)
{
  ck_assert_int_eq(err, 0);
  lk_client_free(c);
  *(bool *)arg = true;
}

START_TEST(a_callback_may_free_its_client)
{
  bool freed = false;
  completion a = {0};

  world_enter(_i);
  ck_assert_int_eq(lk_sync(here, "/", NULL, free_it, &freed), 0);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &a), 0);
  wait_until(&freed);
  here = NULL;
  wait_until(&a.done);
  ck_assert_int_eq(a.err, LK_ERR_CLOSED);
}
END_TEST

TCase *data_tests(void)
{
  const TTest *const tests[] = {
      each_kind_of_node_is_created,
      plain_create_gives_the_path_alone,
      container_is_deleted_after_its_last_child,
      refused_create_names_its_cause,
      null_and_empty_data_differ,
      versions_are_compared,
      requests_for_a_missing_node_end_with_no_node,
      children_are_listed,
      root_is_a_node,
      names_need_not_be_ascii,
      multi_executes_all_operations,
      failed_multi_names_the_failed_operation,
      empty_multi_succeeds,
      multi_with_an_invalid_operation_is_not_sent,
      closing_ends_the_session,
      freeing_completes_outstanding_requests,
      a_callback_may_free_its_client,
  };
  TCase *t = tcase_create("data");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, 2);
  return t;
}

int main(void)
{
  static const char *const options[] = {
      "--container-check", "200", "--property",
      "zookeeper.extendedTypesEnabled=true", NULL};
  TCase *cases[] = {data_tests(),  watch_tests(),   access_tests(),
                    limit_tests(), request_tests(), persistent_watch_tests()};
  Suite *suite = suite_create("client_ops");
  SRunner *runner;
  int failed;

  world_begin(options);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tcase_set_timeout(cases[i], 0);
    tcase_add_checked_fixture(cases[i], world_set_up, world_tear_down);
    suite_add_tcase(suite, cases[i]);
  }
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  server_end(&zk);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
