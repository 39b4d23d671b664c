/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Requests to a real server, without a chroot and with one: what the table of
 * operations (operations_table.c) does not cover. */

#include "live/client/world.h"
#include "support/server_version.h"

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

/* ---- access lists ------------------------------------------------------- */

static char acl_text[256]; /* of the last reply */

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  (void)stat;
  if (acl != NULL)
    ck_assert_uint_lt(lk_acl_print(acl_text, sizeof acl_text, acl),
                      sizeof acl_text);
  on_done(c, err, arg);
}

static const char *get_acl(lk_client *c, const char *path)
{
  ck_assert_int_eq(wait_for_completion(
                       lk_get_acl(c, path, NULL, on_acl, reset_last_reply())),
                   0);
  return acl_text;
}

static int set_acl(lk_client *c, const char *path, const char *text)
{
  lk_acls *acl;

  ck_assert_int_eq(lk_acl_parse(&acl, text, NULL, NULL), 0);
  int err = wait_for_completion(
      lk_set_acl(c, path, acl, -1, NULL, on_stat, reset_last_reply()));

  lk_acl_free(acl, NULL);
  return err;
}

START_TEST(server_computes_and_hides_digests)
{
  char id_of_bob[64], text[256];

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/a", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(lk_acl_digest(id_of_bob, sizeof id_of_bob, "bob:secret"), 0);
  snprintf(text, sizeof text, "world:anyone:r,digest:%s:cdrwa", id_of_bob);
  ck_assert_int_eq(set_acl(here, "/a", text), 0);
  /* The server hides digests from clients without the ADMIN permission. */
  ck_assert_str_eq(get_acl(there, absolute("/a")),
                   "world:anyone:r,digest:bob:x:cdrwa");
  /* The server computed the same digest as lk_acl_digest(). */
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_str_eq(get_acl(here, "/a"), text);
  ck_assert_int_eq(set_acl(here, "/a", "nosuch:x:r"), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(here, "/a", "auth::ra"), 0);
  snprintf(text, sizeof text, "digest:%s:ra", id_of_bob);
  ck_assert_str_eq(get_acl(here, "/a"), text);
}
END_TEST

/* ---- nodes that the server deletes --------------------------------------- */

static int create_ttl(const char *path, int flags, int64_t ttl_ms)
{
  return wait_for_completion(lk_create_ttl(here, path, lk_text("x"), NULL,
                                           flags, ttl_ms, NULL, on_created,
                                           reset_last_reply()));
}

START_TEST(node_with_a_ttl_is_deleted_when_the_ttl_has_passed)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create_ttl("/t", LK_PERSISTENT, 100), 0);
  ck_assert_int_eq(last_reply.stat.ephemeral_owner, 0);
  ck_assert_int_eq(create_ttl("/stay", LK_PERSISTENT, LK_TTL_MAX_MS), 0);
  ck_assert_int_eq(create_ttl("/stay/n-", LK_SEQUENTIAL, 100), 0);
  ck_assert_str_eq(last_reply.path, "/stay/n-0000000000");
  ck_assert_int_eq(create_ttl("/t", LK_EPHEMERAL, 100), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create_ttl("/t", LK_PERSISTENT, -1), LK_ERR_BAD_ARGUMENT);
  while (exists(here, "/t") == 0 || exists(here, "/stay/n-0000000000") == 0)
    usleep(20 * 1000);
  ck_assert_int_eq(exists(here, "/stay"), 0);
  ck_assert_int_eq(delete_node(here, "/stay", -1), 0);
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

/* ---- multi -------------------------------------------------------------- */

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

/* ---- configuration ------------------------------------------------------ */

START_TEST(reconfig_is_disabled_by_default)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = "1", .version = -1};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(wait_for_completion(lk_reconfig(here, &change, NULL, on_get,
                                                   reset_last_reply())),
                   LK_ERR_RECONFIG_DISABLED);
  /* The server refuses the request and keeps the connection. */
  ck_assert_uint_eq(lk_client_connection(here), 1);
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
  ck_assert_int_eq(lk_server_sync(here, "/", NULL, free_client, &has_freed), 0);
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
      container_is_deleted_after_its_last_child,
      null_and_empty_data_differ,
      server_computes_and_hides_digests,
      node_with_a_ttl_is_deleted_when_the_ttl_has_passed,
      root_is_a_node,
      names_need_not_be_ascii,
      empty_multi_succeeds,
      multi_with_an_invalid_operation_is_not_sent,
      reconfig_is_disabled_by_default,
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
  TCase *cases[] = {data_tests(), watch_tests(), access_tests(), limit_tests(),
                    persistent_watch_tests()};
  Suite *suite = suite_create("client_ops");
  SRunner *runner;
  int failed;

  world_begin(options);
  size_t count = sizeof cases / sizeof cases[0];

  if (!server_has(SERVER_PERSISTENT_WATCHES))
    count--; /* the last case: see operations.c for the error */
  for (size_t i = 0; i < count; i++) {
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
