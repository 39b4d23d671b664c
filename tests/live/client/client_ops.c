/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Every request of client.h against a real server, without a chroot and with
 * one. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  UNKNOWN_FLAG = 8,    /* no flag of a create */
  UNKNOWN_OPCODE = 11, /* no opcode of an operation of a transaction */
  INVALID_VERSION = -2 /* -1 is any version */
};

/* ---- creating ----------------------------------------------------------- */

START_TEST(each_kind_of_node_is_created)
{
  /* The number of a sequential node is the number of children that its parent
     has had before. */
  static const struct {
    int flags;
    const char *path;
    const char *created_path; /* in the reply */
    bool is_ephemeral;
  } kinds[] = {
      {LK_PERSISTENT, "/d/p", "/d/p", false},
      {LK_EPHEMERAL, "/d/e", "/d/e", true},
      {LK_SEQUENTIAL, "/d/s-", "/d/s-0000000002", false},
      {LK_SEQUENTIAL | LK_EPHEMERAL, "/d/es-", "/d/es-0000000003", true},
      {LK_SEQUENTIAL, "/d/", "/d/0000000004", false},
      {LK_CONTAINER, "/d/c", "/d/c", false},
  };

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/d", "", LK_PERSISTENT), 0);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    int64_t ephemeral_owner =
        kinds[i].is_ephemeral ? lk_client_session(here).id : 0;

    ck_assert_int_eq(create(here, kinds[i].path, "12", kinds[i].flags), 0);
    ck_assert_str_eq(last_reply.path, kinds[i].created_path);
    ck_assert(last_reply.has_stat);
    ck_assert_int_eq(last_reply.stat.ephemeral_owner, ephemeral_owner);
    ck_assert_int_eq(last_reply.stat.data_length, 2);
    ck_assert_int_eq(last_reply.stat.czxid, last_reply.zxid);
    ck_assert_int_eq(last_reply.evidence, LK_EVIDENCE_COMMIT);
    ck_assert_int_eq(exists(there, absolute(kinds[i].created_path)), 0);
    ck_assert_int_eq(last_reply.stat.ephemeral_owner, ephemeral_owner);
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    ck_assert_int_eq(delete_node(here, kinds[i].created_path, -1), 0);
  ck_assert_int_eq(delete_node(here, "/d", -1), 0);
}
END_TEST

START_TEST(create_reports_the_path_and_no_stat)
{
  connect_here(with_chroot(_i));
  memset(&last_reply, 0, sizeof last_reply);
  ck_assert_int_eq(lk_create(here, "/plain-", lk_text("x"), NULL, LK_SEQUENTIAL,
                             NULL, on_created, &last_reply),
                   0);
  wait_until(&last_reply.done);
  ck_assert_int_eq(last_reply.err, 0);
  ck_assert(!last_reply.has_stat);
  ck_assert_uint_eq(strlen(last_reply.path), strlen("/plain-0123456789"));
  ck_assert_int_eq(get(there, absolute(last_reply.path)), 0);
  ck_assert_str_eq(last_reply.data, "x");
}
END_TEST

START_TEST(container_is_deleted_after_its_last_child)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/box", NULL, LK_CONTAINER), 0);
  ck_assert_int_eq(create(here, "/box/child", NULL, LK_PERSISTENT), 0);
  ck_assert_int_eq(delete_node(here, "/box/child", -1), 0);
  while (exists(here, "/box") == 0)
    usleep(20 * 1000);
  ck_assert_int_eq(last_reply.err, LK_ERR_NO_NODE);
}
END_TEST

START_TEST(refused_create_names_its_cause)
{
  static const lk_acls empty_acl = {NULL, 0};
  lk_acl unknown_scheme = {LK_PERM_ALL, lk_text("nosuch"), lk_text("x")};
  lk_acls unknown_scheme_acl = {&unknown_scheme, 1};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(here, "/x", "", LK_PERSISTENT), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(create(here, "/x/y", "", LK_PERSISTENT),
                   LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  ck_assert_int_eq(create(here, "/no/y", "", LK_PERSISTENT), LK_ERR_NO_NODE);
  ck_assert_int_eq(create_as(here, "/y", &empty_acl, LK_PERSISTENT),
                   LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create_as(here, "/y", &unknown_scheme_acl, LK_PERSISTENT),
                   LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create_as(here, "/y", &lk_acl_creator, LK_PERSISTENT),
                   LK_ERR_INVALID_ACL);
  ck_assert_int_eq(create(here, "/y", "", UNKNOWN_FLAG), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create(here, "/y", "", -1), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create(here, "y", "", LK_PERSISTENT), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/y/", "", LK_PERSISTENT), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/a//b", "", LK_PERSISTENT), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/a/../b", "", LK_PERSISTENT), LK_ERR_BAD_PATH);
  ck_assert_int_eq(create(here, "/\x01", "", LK_PERSISTENT), LK_ERR_BAD_PATH);
  /* None of the errors has cost the connection. */
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

/* ---- data --------------------------------------------------------------- */

START_TEST(null_and_empty_data_differ)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/null-", NULL, LK_SEQUENTIAL), 0);
  char *path = strdup(last_reply.path);
  ck_assert_int_eq(get(here, path), 0);
  ck_assert(last_reply.is_null);
  ck_assert_int_eq(set(here, path, lk_text(""), 0), 0);
  ck_assert_int_eq(last_reply.stat.version, 1);
  ck_assert_int_eq(get(here, path), 0);
  ck_assert(!last_reply.is_null);
  ck_assert_uint_eq(last_reply.len, 0);
  ck_assert_int_eq(set(here, path, lk_text(NULL), 1), 0);
  ck_assert_int_eq(get(here, path), 0);
  ck_assert(last_reply.is_null);
  ck_assert_int_eq(last_reply.stat.version, 2);
  ck_assert_int_eq(set(here, path, lk_bytes_of("\0\xff\0", 3), -1), 0);
  ck_assert_int_eq(get(here, path), 0);
  ck_assert_uint_eq(last_reply.len, 3);
  ck_assert_mem_eq(last_reply.data, "\0\xff\0", 3);
  ck_assert_int_eq(delete_node(here, path, -1), 0);
  free(path);
}
END_TEST

START_TEST(request_with_a_wrong_version_fails)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/v", "0", LK_EPHEMERAL), 0);
  ck_assert_int_eq(set(here, "/v", lk_text("1"), 0), 0);
  ck_assert_int_eq(set(here, "/v", lk_text("2"), 0), LK_ERR_BAD_VERSION);
  ck_assert_int_eq(last_reply.evidence, LK_EVIDENCE_CONTACT);
  ck_assert_int_eq(delete_node(here, "/v", 0), LK_ERR_BAD_VERSION);
  ck_assert_int_eq(get(here, "/v"), 0);
  ck_assert_str_eq(last_reply.data, "1");
  ck_assert_int_eq(delete_node(here, "/v", 1), 0);
  ck_assert_int_eq(set(here, "/v", lk_text(""), INVALID_VERSION),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(delete_node(here, "/v", INVALID_VERSION),
                   LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(requests_for_a_missing_node_end_with_no_node)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(exists(here, "/no"), LK_ERR_NO_NODE);
  ck_assert_int_eq(get(here, "/no"), LK_ERR_NO_NODE);
  ck_assert_int_eq(set(here, "/no", lk_text("x"), -1), LK_ERR_NO_NODE);
  ck_assert_int_eq(children(here, "/no"), LK_ERR_NO_NODE);
  ck_assert_int_eq(delete_node(here, "/no", -1), LK_ERR_NO_NODE);
  ck_assert_int_eq(sync_with(here, "/no"), 0);
  ck_assert_int_eq(last_reply.evidence, LK_EVIDENCE_LEADER);
}
END_TEST

/* Whether the list of children in the last reply has this name. */
static bool lists_child(const char *name)
{
  for (size_t i = 0; i < last_reply.count; i++) {
    if (strcmp(last_reply.names[i], name) == 0)
      return true;
  }
  return false;
}

START_TEST(children_are_listed)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/p", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(children(here, "/p"), 0);
  ck_assert_uint_eq(last_reply.count, 0);
  ck_assert_int_eq(create(here, "/p/one", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/p/two", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(children(here, "/p"), 0);
  ck_assert_uint_eq(last_reply.count, 2);
  ck_assert_int_eq(last_reply.stat.num_children, 2);
  ck_assert(lists_child("one") && lists_child("two"));
  ck_assert_int_eq(delete_node(here, "/p", -1), LK_ERR_NOT_EMPTY);
  ck_assert_int_eq(delete_node(here, "/p/one", -1), 0);
  ck_assert_int_eq(delete_node(here, "/p/two", -1), 0);
  ck_assert_int_eq(delete_node(here, "/p", -1), 0);
}
END_TEST

START_TEST(root_is_a_node)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(exists(here, "/"), 0);
  ck_assert_int_eq(children(here, "/"), 0);
  /* Without a chroot, `/` also has /zookeeper and the nodes of other tests. */
  ck_assert(with_chroot(_i) ? last_reply.count == 0 : last_reply.count > 1);
  ck_assert_int_eq(create(here, "/", "", LK_PERSISTENT), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(set(here, "/", lk_text("root"), -1), 0);
  ck_assert_int_eq(get(there, with_chroot(_i) ? chroot_path : "/"), 0);
  ck_assert_str_eq(last_reply.data, "root");
}
END_TEST

START_TEST(names_need_not_be_ascii)
{
  /* in UTF-8: two letters beyond ASCII */
  static const char path[] = "/Schl\xc3\xbcssel \xe9\x8d\xb5";

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, path, "", LK_EPHEMERAL), 0);
  ck_assert_str_eq(last_reply.path, path);
  ck_assert_int_eq(delete_node(here, path, -1), 0);
}
END_TEST

/* ---- multi -------------------------------------------------------------- */

START_TEST(multi_executes_all_operations)
{
  lk_op ops[] = {
      lk_op_create("/m", lk_text("0"), NULL, LK_PERSISTENT),
      lk_op_create("/m/s-", lk_text(NULL), NULL, LK_SEQUENTIAL),
      lk_op_set("/m", lk_text("1"), 0),
      lk_op_check("/m", 1),
      lk_op_delete("/m/s-0000000000", -1),
      lk_op_create2("/m/e", lk_text(""), NULL, LK_EPHEMERAL),
  };

  connect_here(with_chroot(_i));
  ck_assert_int_eq(multi(here, ops, 6), 0);
  ck_assert_uint_eq(last_reply.count, 6);
  ck_assert_str_eq(last_reply.paths[0], "/m");
  ck_assert_str_eq(last_reply.paths[1], "/m/s-0000000000");
  ck_assert_int_eq(last_reply.versions[2], 1);
  ck_assert_ptr_null(last_reply.results[3].path);
  ck_assert_ptr_null(last_reply.results[4].path);
  ck_assert_str_eq(last_reply.paths[5], "/m/e");
  for (size_t i = 0; i < 6; i++)
    ck_assert_int_eq(last_reply.results[i].err, 0);
  ck_assert_int_eq(last_reply.evidence, LK_EVIDENCE_COMMIT);
  int64_t zxid = last_reply.zxid;
  ck_assert_int_eq(exists(here, "/m/e"), 0);
  ck_assert_int_eq(last_reply.stat.czxid, zxid);
  ck_assert_int_eq(get(there, absolute("/m")), 0);
  ck_assert_str_eq(last_reply.data, "1");
  ck_assert_int_eq(last_reply.stat.czxid, zxid);
  ck_assert_int_eq(delete_node(here, "/m/e", -1), 0);
  ck_assert_int_eq(delete_node(here, "/m", -1), 0);
}
END_TEST

START_TEST(failed_multi_names_the_failed_operation)
{
  lk_op ops[] = {
      lk_op_create("/f", lk_text(""), NULL, LK_PERSISTENT),
      lk_op_check("/f", 7),
      lk_op_delete("/f", -1),
  };

  connect_here(with_chroot(_i));
  ck_assert_int_eq(multi(here, ops, 3), LK_ERR_BAD_VERSION);
  ck_assert_uint_eq(last_reply.count, 3);
  ck_assert_int_eq(last_reply.results[0].err, 0);
  ck_assert_ptr_null(last_reply.results[0].path);
  ck_assert_int_eq(last_reply.results[1].err, LK_ERR_BAD_VERSION);
  ck_assert_int_eq(last_reply.results[2].err, LK_ERR_RUNTIME_INCONSISTENCY);
  ck_assert_int_eq(exists(here, "/f"), LK_ERR_NO_NODE);
  ops[1] = lk_op_check("/absent", -1);
  ck_assert_int_eq(multi(here, ops, 3), LK_ERR_NO_NODE);
  ck_assert_int_eq(last_reply.results[1].err, LK_ERR_NO_NODE);
}
END_TEST

START_TEST(empty_multi_succeeds)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(multi(here, NULL, 0), 0);
  ck_assert_uint_eq(last_reply.count, 0);
}
END_TEST

START_TEST(multi_with_an_invalid_operation_is_not_sent)
{
  lk_op ops[] = {lk_op_check("/", -1), lk_op_delete("bad", -1)};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_PATH);
  ops[1] = lk_op_delete("/x", INVALID_VERSION);
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ops[1] = lk_op_create("/x", lk_text(""), NULL, UNKNOWN_FLAG);
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ops[1].type = UNKNOWN_OPCODE;
  ck_assert_int_eq(multi(here, ops, 2), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(multi(here, ops, 1), 0); /* the valid one alone */
}
END_TEST

/* ---- close and free
 * --------------------------------------------------------------- */

START_TEST(closing_ends_the_session)
{
  completion queued_create = {0};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/mine", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(lk_create2(here, "/queued-", lk_text(""), NULL,
                              LK_EPHEMERAL | LK_SEQUENTIAL, NULL, on_created,
                              &queued_create),
                   0);
  ck_assert_int_eq(close_client(here), 0);
  ck_assert(queued_create.done);
  ck_assert_int_eq(queued_create.err, 0);
  ck_assert_uint_lt(queued_create.order, last_reply.order);
  ck_assert_int_eq(lk_client_state(here), LK_STATE_CLOSED);
  ck_assert_int_eq(get(here, "/"), LK_ERR_CLOSED);
  ck_assert_int_eq(lk_client_close(here, NULL, NULL), LK_ERR_CLOSED);
  ck_assert_int_eq(exists(there, absolute("/mine")), LK_ERR_NO_NODE);
  ck_assert_int_eq(exists(there, absolute(queued_create.path)), LK_ERR_NO_NODE);
}
END_TEST

START_TEST(freeing_completes_outstanding_requests)
{
  completion unsent_get = {0}, unsent_delete = {0};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(exists(here, "/"), 0);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &unsent_get), 0);
  ck_assert_int_eq(lk_delete(here, "/none", -1, NULL, on_done, &unsent_delete),
                   0);
  lk_client_free(here);
  here = NULL;
  ck_assert(unsent_get.done && unsent_delete.done);
  ck_assert_int_eq(unsent_get.err, LK_ERR_CLOSED);
  ck_assert_int_eq(unsent_delete.err, LK_ERR_NOT_SENT);
}
END_TEST

static void free_client(lk_client *c, int err, void *arg)
{
  ck_assert_int_eq(err, 0);
  lk_client_free(c);
  *(bool *)arg = true;
}

START_TEST(a_callback_may_free_its_client)
{
  bool has_freed = false;
  completion next_get = {0};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(lk_sync(here, "/", NULL, free_client, &has_freed), 0);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &next_get), 0);
  wait_until(&has_freed);
  here = NULL;
  wait_until(&next_get.done);
  ck_assert_int_eq(next_get.err, LK_ERR_CLOSED);
}
END_TEST

TCase *data_tests(void)
{
  const TTest *const tests[] = {
      each_kind_of_node_is_created,
      create_reports_the_path_and_no_stat,
      container_is_deleted_after_its_last_child,
      refused_create_names_its_cause,
      null_and_empty_data_differ,
      request_with_a_wrong_version_fails,
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

  add_tests_without_and_with_chroot(t, tests, sizeof tests / sizeof tests[0]);
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
