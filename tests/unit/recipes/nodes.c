/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"
#include "support/wire.h"

#include <latchkey/nodes.h>

#include "proto/wire/opcode.h"

#include <stdio.h>
#include <stdlib.h>

/* Creates with parents, deletes of trees, and reliable writes, with a model
 * server in memory. */

static model_server server;
static model_link *link;
static failing_mem mem;
static size_t outstanding_limit;
static const char *hosts; /* connect string with a chroot; NULL: no chroot */

/* What the last callback has received. */
static int result; /* or NOT_YET */
static char created_path[256];
static size_t deleted_count;
static lk_stat last_stat;

static unsigned callbacks; /* how many were invoked since the call */
static bool callback_frees_client;
/* The delete of a tree is cancelled after this many nodes. */
static size_t cancel_after;

/* Arguments of reliable writes. `sole` promises that no other client writes to
 * the node. */
enum { ANY_VERSION = -1, SHARED = false, SOLE = true };

static void on_auth(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)err;
  (void)arg;
}

static bool try_make_client(void)
{
  lk_client_config config = {.size = sizeof config,
                             .hosts = hosts,
                             .session_timeout_ms = T,
                             .outstanding_limit = outstanding_limit,
                             .mem = &mem.mem};

  link = model_client(&server, &config);
  if (link != NULL) /* the identity that lk_acl_creator() stands for */
    (void)lk_add_auth(link->client, "digest", lk_text("me:x"), on_auth, NULL);
  return link != NULL;
}

static void begin(void)
{
  outstanding_limit = 0;
  hosts = NULL;
  callback_frees_client = false;
  cancel_after = SIZE_MAX;
  failing_mem_init(&mem);
  model_init(&server);
  ck_assert(try_make_client());
  model_turn(&server);
  link->log[0] = '\0';
}

/* Replaces the client by one with this chroot on the same server. */
static void use_chroot(const char *chroot)
{
  static char connect_string[32];

  snprintf(connect_string, sizeof connect_string, "host%s", chroot);
  hosts = connect_string;
  lk_client_free(link->client);
  ck_assert(try_make_client());
  model_turn(&server);
  link->log[0] = '\0';
}

static void finish(void)
{
  lk_client_free(link->client);
  ck_assert_uint_eq(mem.live, 0);
  model_done(&server);
}

static void record_result(int err)
{
  result = err;
  callbacks++;
  if (callback_frees_client)
    lk_client_free(link->client);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  ck_assert_ptr_eq(arg, created_path);
  ck_assert(err == 0 || (path == NULL && stat == NULL));
  snprintf(created_path, sizeof created_path, "%s", err == 0 ? path : "");
  if (err == 0)
    last_stat = *stat;
  record_result(err);
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (err == 0)
    last_stat = *stat;
  record_result(err);
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  record_result(err);
}

static char failed_path[100];

static void on_deleted(lk_client *c, int err, size_t count, const char *path,
                       void *arg)
{
  (void)c;
  (void)arg;
  deleted_count = count;
  snprintf(failed_path, sizeof failed_path, "%s", path == NULL ? "" : path);
  record_result(err);
}

static bool continue_until_cancelled(lk_client *c, size_t count, void *arg)
{
  (void)c;
  (void)arg;
  return count < cancel_after;
}

/* Run until the call completes; returns its result. */
static int wait_for_result(void)
{
  result = NOT_YET;
  callbacks = 0;
  model_turn(&server);
  if (result == NOT_YET)
    model_run(&server, T / 2);
  ck_assert_uint_le(callbacks, 1);
  return result;
}

static const sim_node *node(const char *path)
{
  return model_node(&server, path);
}

/* Begins with a client that has received a zxid, and with "/d". */
static void begin_with_zxid(bool node_exists)
{
  begin();
  model_create(&server, "/d");
  if (node_exists)
    model_create(&server, "/d/n");
  /* After this reply the client has seen the zxid of the create. */
  ck_assert_int_eq(
      lk_delete(link->client, "/none", ANY_VERSION, NULL, on_done, NULL), 0);
  ck_assert_int_eq(wait_for_result(), LK_ERR_NO_NODE);
  link->log[0] = '\0';
}

static void begin_without_node(void)
{
  const bool node_exists = false;

  begin_with_zxid(node_exists);
}

static void begin_with_node(void)
{
  const bool node_exists = true;

  begin_with_zxid(node_exists);
}

/* ---- creates with parents ---------------------------------------------- */

static const lk_acl read_create_acl = {
    LK_PERM_READ | LK_PERM_CREATE, {"world", 5}, {"anyone", 6}};
static const lk_acls read_create_acls = {&read_create_acl, 1};
static const lk_parents_config containers = {
    .size = sizeof containers, .containers = true, .acl = &read_create_acls};

static int create_with_parents(const char *path, int flags,
                               const lk_parents_config *parents)
{
  int err = lk_create_with_parents(link->client, path, lk_text("data"),
                                   lk_acl_creator(), flags, parents, NULL,
                                   on_created, created_path);

  return err != 0 ? err : wait_for_result();
}

START_TEST(create_below_existing_parents_is_one_request)
{
  begin();
  model_create(&server, "/a");
  ck_assert_int_eq(create_with_parents("/a/b", LK_PERSISTENT, NULL), 0);
  ck_assert(model_check_log(link, "create2"));
  ck_assert_str_eq(created_path, "/a/b");
  ck_assert_int_eq(create_with_parents("/a/b", LK_PERSISTENT, NULL),
                   LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(create_with_parents("/c", LK_PERSISTENT, NULL), 0);
  finish();
}
END_TEST

START_TEST(missing_parents_are_created_in_one_write_with_the_node)
{
  begin();
  model_create(&server, "/a");
  ck_assert_int_eq(create_with_parents("/a/b/c/d-", LK_SEQUENTIAL, NULL), 0);
  ck_assert(model_check_log(link, "create2 | create create create create2"));
  ck_assert_str_eq(created_path, "/a/b/c/d-0000000000");
  ck_assert_int_eq(last_stat.czxid, node(created_path)->stat.czxid);
  ck_assert_int_eq(node("/a/b")->stat.data_length, 0);
  ck_assert(!node("/a/b")->container);
  ck_assert_str_eq(model_acl(&server, "/a/b/c"), "31 world anyone");
  ck_assert_int_eq(node(created_path)->stat.data_length, 4);
  ck_assert_str_eq(model_acl(&server, created_path),
                   "31 digest me:xSt7uiiGSJ+hX0ohMyxaLcULzA0=");
  finish();
}
END_TEST

enum { DEEP = 3000, ONE_MB = 1 << 20 };

/* Empties the log, which has no room for so many requests. */
static void forget_log(model_server *s, model_link *l, const char *names)
{
  (void)s;
  (void)names;
  l->log[0] = '\0';
}

static const char *deep_path(void)
{
  static char path[2 * DEEP + 1];

  for (size_t i = 0; i < DEEP; i++)
    memcpy(path + 2 * i, "/a", sizeof "/a");
  return path;
}

/* Requests for all parents have 9 MB. */
START_TEST(parents_of_a_long_path_are_requested_in_portions)
{
  begin();
  server.wrote = forget_log;
  mem.peak = mem.held;
  link->requests = 0;
  ck_assert_int_eq(create_with_parents(deep_path(), LK_PERSISTENT, NULL), 0);
  ck_assert_uint_eq(link->requests, 1 + DEEP);
  ck_assert_ptr_nonnull(node(deep_path()));
  ck_assert_uint_lt(mem.peak, 3 * ONE_MB);
  finish();
}
END_TEST

START_TEST(parents_are_requested_though_few_requests_may_be_outstanding)
{
  begin();
  outstanding_limit = 2;
  lk_client_free(link->client);
  ck_assert(try_make_client());
  model_turn(&server);
  ck_assert_int_eq(create_with_parents("/a/b/c/d/e", LK_PERSISTENT, NULL), 0);
  ck_assert_ptr_nonnull(node("/a/b/c/d/e"));
  finish();
}
END_TEST

/* The first portion has some 160 requests. */
START_TEST(refused_parent_ends_the_requests_of_a_long_path)
{
  begin();
  server.wrote = forget_log;
  model_create(&server, "/a");
  model_deny(&server, "/a", LK_PERM_CREATE);
  link->requests = 0;
  ck_assert_int_eq(create_with_parents(deep_path(), LK_PERSISTENT, NULL),
                   LK_ERR_NO_AUTH);
  ck_assert_uint_lt(link->requests, 200);
  finish();
}
END_TEST

START_TEST(lost_connection_ends_the_requests_of_a_long_path)
{
  begin();
  server.wrote = forget_log;
  link->requests = 0;
  link->cut_at = 500;
  ck_assert_int_eq(create_with_parents(deep_path(), LK_PERSISTENT, NULL),
                   LK_ERR_IN_DOUBT);
  model_run(&server, T);
  ck_assert_uint_lt(link->requests, 510);
  finish();
}
END_TEST

START_TEST(parents_can_be_containers_with_their_own_acl)
{
  begin();
  ck_assert_int_eq(create_with_parents("/a/b/c", LK_EPHEMERAL, &containers), 0);
  ck_assert(node("/a")->container && node("/a/b")->container);
  ck_assert_str_eq(model_acl(&server, "/a/b"), "5 world anyone");
  ck_assert_int_ne(node("/a/b/c")->stat.ephemeral_owner, 0);
  finish();
}
END_TEST

START_TEST(containers_are_refused_by_an_old_server)
{
  begin();
  server.no_containers = true;
  ck_assert_int_eq(create_with_parents("/a/b/c", LK_PERSISTENT, &containers),
                   LK_ERR_UNIMPLEMENTED);
  finish();
}
END_TEST

static unsigned deletions_left;

/* Deletes "/a/b" between its create and the create of the node below it. */
static void delete_parent_before_create(model_server *s, model_link *l,
                                        int32_t op, const char *path)
{
  (void)l;
  if (op != LK_OPCODE_CREATE2 || deletions_left == 0 || node("/a/b") == NULL)
    return;
  ck_assert_str_eq(path, "/a/b/c");
  deletions_left--;
  model_delete(s, "/a/b");
}

START_TEST(deleted_container_parents_are_created_again_ten_times_at_most)
{
  static const struct {
    unsigned deletions;
    unsigned left; /* of these */
    int err;
  } cases[] = {{3, 0, 0}, {100, 90, LK_ERR_NO_NODE}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin();
    deletions_left = cases[i].deletions;
    server.before = delete_parent_before_create;
    ck_assert_int_eq(create_with_parents("/a/b/c", LK_PERSISTENT, &containers),
                     cases[i].err);
    ck_assert_uint_eq(deletions_left, cases[i].left);
    finish();
  }
}
END_TEST

START_TEST(missing_permission_for_a_parent_is_the_result)
{
  const int32_t no_permission = 0;

  begin();
  model_deny(&server, "/", LK_PERM_CREATE);
  ck_assert_int_eq(create_with_parents("/a/b/c", LK_PERSISTENT, NULL),
                   LK_ERR_NO_AUTH);
  model_deny(&server, "/", no_permission);
  model_create(&server, "/a");
  model_deny(&server, "/", LK_PERM_CREATE);
  /* "/a" exists, so no permission for "/" is needed */
  ck_assert_int_eq(create_with_parents("/a/b/c", LK_PERSISTENT, NULL), 0);
  ck_assert_int_eq(create_with_parents("/z", LK_PERSISTENT, NULL),
                   LK_ERR_NO_AUTH);
  finish();
}
END_TEST

START_TEST(create_below_an_ephemeral_node_fails_with_its_error)
{
  begin();
  ck_assert_int_eq(create_with_parents("/e", LK_EPHEMERAL, NULL), 0);
  ck_assert_int_eq(create_with_parents("/e/x/y", LK_PERSISTENT, NULL),
                   LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  finish();
}
END_TEST

/* The server replies NO_NODE even to the create of the first parent, as it does
 * if the chroot does not exist. */
START_TEST(missing_root_ends_a_create_with_parents)
{
  begin();
  link->answer_at = 2; /* the create of "/a" */
  link->answer_err = LK_ERR_NO_NODE;
  link->requests = 0;
  server.before = delete_parent_before_create;
  deletions_left = 1; /* so that the create of the node fails, too */
  model_create(&server, "/a");
  ck_assert_int_eq(create_with_parents("/a/b/c", LK_PERSISTENT, NULL),
                   LK_ERR_NO_NODE);
  ck_assert_uint_eq(model_count(link, "create2"), 2);
  finish();
}
END_TEST

START_TEST(parents_end_at_the_chroot)
{
  begin();
  use_chroot("/app");
  ck_assert_int_eq(create_with_parents("/a/b", LK_PERSISTENT, NULL),
                   LK_ERR_NO_NODE);
  ck_assert(model_check_log(link, "create2 | create create2"));
  ck_assert_ptr_null(node("/app"));
  model_create(&server, "/app");
  ck_assert_int_eq(create_with_parents("/a/b", LK_PERSISTENT, NULL), 0);
  ck_assert_str_eq(created_path, "/a/b");
  ck_assert_ptr_nonnull(node("/app/a/b"));
  finish();
}
END_TEST

/* The server does not read the write that creates the parents. */
static void freeze_at_parents(model_server *s, model_link *l, const char *names)
{
  (void)s;
  l->frozen = strstr(names, "create create") != NULL;
}

START_TEST(a_deadline_covers_all_of_a_create)
{
  lk_call call = {.size = sizeof call, .timeout_ms = 100};

  begin();
  link->frozen = true;
  ck_assert_int_eq(lk_create_with_parents(link->client, "/a/b", lk_text(""),
                                          NULL, LK_PERSISTENT, NULL, &call,
                                          on_created, created_path),
                   0);
  result = NOT_YET;
  model_run(&server, 99);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(result, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(deadline_ends_a_create_whose_parents_are_not_created_yet)
{
  lk_call call = {.size = sizeof call, .timeout_ms = 100};

  begin();
  server.wrote = freeze_at_parents;
  ck_assert_int_eq(lk_create_with_parents(link->client, "/a/b/c", lk_text(""),
                                          NULL, LK_PERSISTENT, NULL, &call,
                                          on_created, created_path),
                   0);
  server.clock_step_ms = 1; /* time passes between the two writes */
  result = NOT_YET;
  model_turn(&server);
  server.clock_step_ms = 0;
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 100);
  ck_assert_int_eq(result, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(invalid_arguments_are_refused)
{
  lk_call call = {.size = sizeof call, .repeat = true};
  lk_parents_config parents_without_size = {0};
  const int unknown_flags = 99;

  begin_without_node();
  ck_assert_int_eq(create_with_parents("a/b", LK_PERSISTENT, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(create_with_parents("", LK_PERSISTENT, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(create_with_parents(NULL, LK_PERSISTENT, NULL),
                   LK_ERR_BAD_PATH);
  ck_assert_int_eq(create_with_parents("/a", unknown_flags, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      create_with_parents("/a", LK_PERSISTENT, &parents_without_size),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_create_with_parents(link->client, "/a", lk_text(""), NULL,
                                          LK_PERSISTENT, NULL, &call, NULL,
                                          NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive2(link->client, "/", NULL, NULL, on_deleted, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive2(link->client, "/zookeeper", NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_delete_recursive2(link->client, "/zookeeper/quota", NULL,
                                        NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive2(link->client, "x", NULL, NULL, NULL, NULL),
      LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_set_reliable(link->client, "/x", lk_text(""),
                                   ANY_VERSION - 1, SHARED, NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert(model_check_log(link, ""));
  finish();
}
END_TEST

/* ---- deletes of trees -------------------------------------------------- */

static int delete_tree_with(const char *path, bool repeat)
{
  lk_call call = {.size = sizeof call, .repeat = repeat};
  int err = lk_delete_recursive2(link->client, path, &call,
                                 continue_until_cancelled, on_deleted, NULL);

  return err != 0 ? err : wait_for_result();
}

static int delete_tree(const char *path)
{
  const bool repeat = false;

  return delete_tree_with(path, repeat);
}

static int delete_tree_with_repeat(const char *path)
{
  const bool repeat = true;

  return delete_tree_with(path, repeat);
}

enum { TREE_NODES = 13 };

/* The tree "/t", and beside it "/tree", which does not belong to it. */
static void create_tree(void)
{
  static const char *const paths[] = {
      "/t",         "/t/a", "/t/b",   "/t/b/c", "/t/b/d",
      "/t/b/d/e",   "/t/f", "/t/f/g", "/t/f/h", "/t/f/h/i",
      "/t/f/h/i/j", "/t/k", "/t/l-0", "/tree"};

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
    model_create(&server, paths[i]);
}

START_TEST(delete_of_a_leaf_is_one_request)
{
  begin();
  create_tree();
  ck_assert_int_eq(delete_tree("/t/a"), 0);
  ck_assert(model_check_log(link, "delete"));
  ck_assert_uint_eq(deleted_count, 1);
  ck_assert_int_eq(delete_tree("/t/a"), LK_ERR_NO_NODE);
  ck_assert_uint_eq(deleted_count, 0);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_deletes_nothing_else)
{
  begin();
  create_tree();
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted_count, TREE_NODES);
  ck_assert_ptr_null(node("/t"));
  ck_assert_ptr_nonnull(node("/tree"));
  finish();
}
END_TEST

START_TEST(delete_of_a_directory_of_leaves_is_three_writes)
{
  begin();
  model_create(&server, "/d");
  model_create(&server, "/d/1");
  model_create(&server, "/d/2");
  model_create(&server, "/d/3");
  ck_assert_int_eq(delete_tree("/d"), 0);
  ck_assert(model_check_log(
      link, "delete | getChildren2 | delete delete delete delete"));
  ck_assert_uint_eq(deleted_count, 4);
  finish();
}
END_TEST

START_TEST(chain_of_directories_is_deleted_with_three_deletes_a_node)
{
  char path[1024] = "";
  const unsigned depth = 100;

  begin();
  for (unsigned i = 0; i < depth; i++) {
    strcat(path, "/n");
    model_create(&server, path);
  }
  ck_assert_int_eq(delete_tree("/n"), 0);
  ck_assert_uint_eq(deleted_count, depth);
  ck_assert_uint_eq(model_count(link, "getChildren2"), depth - 1);
  ck_assert_uint_le(model_count(link, "delete"), 3 * depth);
  finish();
}
END_TEST

/* The write with the delete of the leaf has that of its parent, too. When the
   leaf is deleted, all others follow in one write. */
START_TEST(chain_of_directories_is_deleted_in_two_writes)
{
  char path[64] = "";

  begin();
  for (int i = 0; i < 10; i++) {
    strcat(path, "/n");
    model_create(&server, path);
  }
  ck_assert_int_eq(delete_tree("/n"), 0);
  ck_assert_uint_eq(deleted_count, 10);
  ck_assert_msg(strstr(link->log,
                       "| delete delete delete delete delete delete delete "
                       "delete") != NULL,
                "%s", link->log);
  finish();
}
END_TEST

/* The paths of all nodes have 9 MB. */
START_TEST(delete_of_a_deep_tree_keeps_no_paths)
{
  begin();
  server.wrote = forget_log;
  ck_assert_int_eq(create_with_parents(deep_path(), LK_PERSISTENT, NULL), 0);
  mem.peak = mem.held;
  ck_assert_int_eq(delete_tree("/a"), 0);
  ck_assert_uint_eq(deleted_count, DEEP);
  ck_assert_uint_lt(mem.peak, 4 * ONE_MB);
  finish();
}
END_TEST

/* The server does not read a write that contains a list. */
static void freeze_at_list(model_server *s, model_link *l, const char *names)
{
  (void)s;
  l->frozen = strstr(names, "getChildren2") != NULL;
}

static void assert_delete_ends_at_deadline(int64_t timeout_ms)
{
  lk_call call = {
      .size = sizeof call, .timeout_ms = timeout_ms, .repeat = true};

  ck_assert_int_eq(
      lk_delete_recursive2(link->client, "/t", &call, NULL, on_deleted, NULL),
      0);
  result = NOT_YET;
  model_run(&server, timeout_ms - 1);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(result, LK_ERR_DEADLINE);
}

START_TEST(a_deadline_covers_all_of_a_tree)
{
  begin();
  create_tree();
  server.wrote = freeze_at_list;
  assert_delete_ends_at_deadline(100);
  finish();
  /* The deadline also ends a pause, and the requests after it. */
  begin();
  create_tree();
  link->requests = 0;
  link->throttle_at = 1;
  assert_delete_ends_at_deadline(50);
  finish();
  begin();
  create_tree();
  link->requests = 0;
  link->throttle_at = 1;
  server.wrote = freeze_at_list;
  assert_delete_ends_at_deadline(200);
  finish();
}
END_TEST

START_TEST(zookeeper_node_is_reserved_at_the_root_of_the_servers_only)
{
  begin();
  model_create(&server, "/app");
  model_create(&server, "/app/zookeeper");
  model_create(&server, "/app/zookeeper/x");
  model_create(&server, "/zookeepers");
  ck_assert_int_eq(delete_tree("/zookeepers"), 0);
  use_chroot("/app");
  ck_assert_int_eq(delete_tree("/zookeeper"), 0);
  ck_assert_ptr_null(node("/app/zookeeper"));
  ck_assert_int_eq(delete_tree("/"), LK_ERR_BAD_ARGUMENT);
  use_chroot("/zookeeper");
  ck_assert_int_eq(delete_tree("/quota"), LK_ERR_BAD_ARGUMENT);
  finish();
}
END_TEST

static unsigned children_to_create;

/* Another client creates a child of "/t" before "/t" is deleted. */
static void create_child_before_delete(model_server *s, model_link *l,
                                       int32_t op, const char *path)
{
  char name[64];

  (void)l;
  if (op != LK_OPCODE_DELETE || children_to_create == 0 ||
      strcmp(path, "/t") != 0)
    return;
  snprintf(name, sizeof name, "/t/new-%u", children_to_create--);
  model_create(s, name);
}

START_TEST(nodes_created_during_a_delete_are_deleted)
{
  begin();
  create_tree();
  children_to_create = 4;
  server.before = create_child_before_delete;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(children_to_create, 0);
  ck_assert_uint_eq(deleted_count, TREE_NODES + 4);
  finish();
}
END_TEST

START_TEST(delete_gives_up_when_children_are_created_all_the_time)
{
  begin();
  create_tree();
  children_to_create = 1000;
  server.before = create_child_before_delete;
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NOT_EMPTY);
  ck_assert_ptr_nonnull(node("/t"));
  ck_assert_uint_ge(deleted_count, TREE_NODES - 1);
  finish();
}
END_TEST

/* The tree vanishes before the n-th request with this opcode. */
static int32_t vanish_op;
static unsigned vanish_at; /* n, counted down; 0: it has vanished */

/* Another client deletes the whole tree. */
static void delete_tree_before_request(model_server *s, model_link *l,
                                       int32_t op, const char *path)
{
  static const char *const paths[] = {
      "/t/b/d/e", "/t/b/d", "/t/b/c", "/t/b", "/t/f/h/i/j",
      "/t/f/h/i", "/t/f/h", "/t/f/g", "/t/f", "/t/a",
      "/t/k",     "/t/l-0", "/t"};

  (void)l;
  (void)path;
  if (op != vanish_op || vanish_at == 0 || --vanish_at > 0)
    return;
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    if (node(paths[i]) != NULL)
      model_delete(s, paths[i]);
  }
}

START_TEST(nodes_that_others_delete_meanwhile_are_no_error)
{
  static const int32_t ops[] = {LK_OPCODE_GET_CHILDREN2, LK_OPCODE_DELETE};
  static const unsigned requests[] = {6, 10}; /* of a whole delete, or fewer */

  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    for (unsigned n = 1; n <= requests[i]; n++) {
      begin();
      create_tree();
      vanish_op = ops[i];
      vanish_at = n;
      server.before = delete_tree_before_request;
      int err = delete_tree("/t");

      ck_assert_uint_eq(vanish_at, 0);
      ck_assert(err == 0 || (n == 1 && err == LK_ERR_NO_NODE));
      ck_assert_ptr_null(node("/t"));
      ck_assert_uint_le(deleted_count, TREE_NODES);
      server.before = NULL;
      finish();
    }
  }
}
END_TEST

START_TEST(first_refused_request_ends_the_delete_of_a_tree)
{
  begin();
  create_tree();
  model_deny(&server, "/t/b", LK_PERM_DELETE);
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NO_AUTH);
  ck_assert(strncmp(failed_path, "/t/b/", strlen("/t/b/")) == 0);
  ck_assert_ptr_nonnull(node("/t/b/c"));
  model_deny(&server, "/t/b", LK_PERM_READ);
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NO_AUTH);
  ck_assert_str_eq(failed_path, "/t/b");
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_can_be_cancelled)
{
  begin();
  create_tree();
  cancel_after = 3;
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_CANCELLED);
  ck_assert_uint_ge(deleted_count, 3);
  ck_assert_ptr_nonnull(node("/t"));
  cancel_after = 0;
  ck_assert_int_eq(delete_tree("/tree"), LK_ERR_CANCELLED);
  finish();
}
END_TEST

static unsigned most_lists;          /* largest number of lists in one write */
static unsigned writes;              /* how many the client has made */
static unsigned deletes_in_write[8]; /* in each of the first writes */

static void count_requests_of_write(model_server *s, model_link *l,
                                    const char *names)
{
  unsigned count = 0;

  (void)s;
  for (const char *at = names; (at = strstr(at, "getChildren2")) != NULL; at++)
    count++;
  most_lists = count > most_lists ? count : most_lists;
  for (const char *at = names; (at = strstr(at, "delete")) != NULL; at++)
    deletes_in_write[writes % 8]++;
  writes++;
  l->log[0] = '\0';
}

static void begin_to_count_writes(void)
{
  most_lists = 0;
  writes = 0;
  memset(deletes_in_write, 0, sizeof deletes_in_write);
  server.wrote = count_requests_of_write;
}

/* The directory "/w" with leaves, and with subdirectories of one leaf each.
 * Begins to count its writes. */
static void create_wide_tree(int leaves, int directories)
{
  char path[64];

  model_create(&server, "/w");
  for (int i = 0; i < leaves; i++) {
    snprintf(path, sizeof path, "/w/leaf%d", i);
    model_create(&server, path);
  }
  for (int i = 0; i < directories; i++) {
    snprintf(path, sizeof path, "/w/dir%d", i);
    model_create(&server, path);
    snprintf(path, sizeof path, "/w/dir%d/leaf", i);
    model_create(&server, path);
  }
  begin_to_count_writes();
}

START_TEST(deletes_of_long_paths_are_at_most_one_megabyte_at_a_time)
{
  static char path[2 * DEEP + sizeof "/000"];

  begin();
  server.wrote = forget_log;
  ck_assert_int_eq(create_with_parents(deep_path(), LK_PERSISTENT, NULL), 0);
  for (int i = 0; i < 200; i++) {
    snprintf(path, sizeof path, "%s/%03d", deep_path(), i);
    model_create(&server, path);
  }
  begin_to_count_writes();
  ck_assert_int_eq(delete_tree(deep_path()), 0);
  ck_assert_uint_eq(deletes_in_write[2], ONE_MB / strlen(path) + 1);
  finish();
}
END_TEST

START_TEST(sixteen_lists_are_requested_at_a_time_at_most)
{
  begin();
  create_wide_tree(0, 40);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted_count, 1 + 40 * 2);
  ck_assert_uint_eq(most_lists, 16);
  finish();
}
END_TEST

/* Reverses the list of "/w", so that the directories, which were created last,
 * come first. */
static bool serve_list_backwards(model_link *l, lk_bytes frame)
{
  const sim_node *n = node("/w");
  size_t count = 0;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);
  lk_bytes path = lk__reader_bytes(&in);

  if (op != LK_OPCODE_GET_CHILDREN2 || path.len != strlen("/w"))
    return model_serve(l, frame);
  lk_bytes *names = calloc((size_t)n->stat.num_children, sizeof *names);

  for (const sim_node *child = n->last_child; child != NULL;
       child = child->prev)
    names[count++] = lk_text(child->name);
  wire_list(&l->out, xid, n->stat.pzxid, names, count, &n->stat);
  free(names);
  return true;
}

enum {
  SENT_NAMES = 256,  /* deletes sent before the first directory turns out not to
                        be empty */
  MANY_NAMES = 4096, /* with so many other names in memory, lists are requested
                        one at a time */
  DIRECTORIES = 3
};

/* `names`: how many children of the directory are in memory when the first list
 * is requested. */
START_TEST(with_many_names_in_memory_one_list_is_requested_at_a_time)
{
  for (int names = MANY_NAMES - 1; names <= MANY_NAMES; names++) {
    int children = SENT_NAMES + names;

    begin();
    server.serve = serve_list_backwards;
    create_wide_tree(children - DIRECTORIES, DIRECTORIES);
    ck_assert_int_eq(delete_tree("/w"), 0);
    ck_assert_uint_eq(deleted_count, 1 + (size_t)children + DIRECTORIES);
    ck_assert_uint_eq(most_lists, names < MANY_NAMES ? DIRECTORIES : 1);
    finish();
  }
}
END_TEST

START_TEST(delete_of_a_tree_respects_the_limit_of_outstanding_requests)
{
  begin();
  lk_client_free(link->client);
  outstanding_limit = 2;
  ck_assert(try_make_client());
  create_tree();
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted_count, TREE_NODES);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_with_repeat_continues_after_connection_loss)
{
  for (unsigned at = 1; at <= 30; at++) {
    for (int executed = 0; executed < 2; executed++) {
      begin();
      create_tree();
      link->requests = 0;
      link->cut_at = at;
      link->cut_after = executed;
      ck_assert_int_eq(delete_tree_with_repeat("/t"), 0);
      ck_assert_ptr_null(node("/t"));
      ck_assert_uint_le(deleted_count, TREE_NODES);
      finish();
    }
  }
}
END_TEST

START_TEST(delete_with_a_lost_reply_succeeds_if_the_node_is_gone)
{
  begin();
  model_create(&server, "/t");
  link->requests = 0;
  link->cut_at = 1;
  link->cut_after = true;
  ck_assert_int_eq(delete_tree_with_repeat("/t"), 0);
  ck_assert_uint_eq(deleted_count, 0);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_without_repeat_ends_with_the_connection)
{
  begin();
  create_tree();
  link->requests = 0;
  link->cut_at = 4;
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_IN_DOUBT);
  ck_assert_ptr_nonnull(node("/t"));
  finish();
}
END_TEST

/* The requests from one number to before the other number are throttled. */
static unsigned throttle_from, throttle_until;

static void throttle_range(model_server *s, model_link *l, int32_t op,
                           const char *path)
{
  (void)s;
  (void)op;
  (void)path;
  if (l->requests < throttle_from || l->requests >= throttle_until)
    return;
  l->answer_at = l->requests;
  l->answer_err = LK_ERR_THROTTLED;
}

/* The number of requests for the delete of the tree if `throttled` of them in a
 * row are throttled, from number `at` on. */
static unsigned count_requests(unsigned at, unsigned throttled)
{
  begin();
  create_tree();
  link->requests = 0;
  throttle_from = at;
  throttle_until = at + throttled;
  server.before = throttle_range;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted_count, TREE_NODES);
  unsigned requests =
      model_count(link, "delete") + model_count(link, "getChildren2");

  server.before = NULL;
  finish();
  return requests;
}

/* A pause changes the order of requests, so one directory more or less may be
 * deleted or listed again. */
START_TEST(each_throttled_request_costs_one_more_request)
{
  const unsigned reordered = 4; /* the most requests added by another order */
  unsigned usual = count_requests(1, 0);

  ck_assert_uint_eq(usual, 29);
  for (unsigned at = 1; at <= usual; at++) {
    for (unsigned throttled = 1; throttled < 6; throttled++)
      ck_assert_uint_le(count_requests(at, throttled),
                        usual + throttled + reordered);
  }
}
END_TEST

START_TEST(pause_of_a_delete_ends_with_the_client)
{
  begin();
  model_create(&server, "/t");
  link->requests = 0;
  link->throttle_at = 1;
  ck_assert_int_eq(lk_delete_recursive2(link->client, "/t", NULL,
                                        continue_until_cancelled, on_deleted,
                                        NULL),
                   0);
  result = NOT_YET;
  model_turn(&server);
  ck_assert_int_eq(result, NOT_YET);
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_NOT_SENT);
  finish();
}
END_TEST

START_TEST(client_can_be_freed_during_the_delete_of_a_tree)
{
  for (unsigned turns = 0; turns < 12; turns++) {
    begin();
    create_tree();
    ck_assert_int_eq(lk_delete_recursive2(link->client, "/t", NULL,
                                          continue_until_cancelled, on_deleted,
                                          NULL),
                     0);
    link->step = 40; /* bytes arrive in pieces of this size */
    result = NOT_YET;
    callbacks = 0;
    for (unsigned i = 0; i < turns; i++) {
      link->allow = 60; /* bytes arrive in this turn */
      model_turn(&server);
    }
    lk_client_free(link->client);
    ck_assert(result == LK_ERR_CLOSED || result == LK_ERR_NOT_SENT);
    ck_assert_uint_eq(callbacks, 1);
    finish();
  }
}
END_TEST

START_TEST(client_can_be_freed_in_the_callback_of_a_result)
{
  begin();
  create_tree();
  callback_frees_client = true;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(mem.live, 0);
  ck_assert_ptr_null(link->client);
  ck_assert(try_make_client());
  ck_assert_int_eq(create_with_parents("/x/y", LK_PERSISTENT, NULL), 0);
  ck_assert_ptr_null(link->client);
  finish();
}
END_TEST

static bool free_client_on_progress(lk_client *c, size_t count, void *arg)
{
  (void)count;
  (void)arg;
  lk_client_free(c);
  return true;
}

START_TEST(client_can_be_freed_in_the_progress_callback)
{
  begin();
  create_tree();
  ck_assert_int_eq(lk_delete_recursive2(link->client, "/t", NULL,
                                        free_client_on_progress, on_deleted,
                                        NULL),
                   0);
  ck_assert_int_eq(wait_for_result(), LK_ERR_NOT_SENT);
  finish();
}
END_TEST

/* ---- reliable writes: see the table in latchkey/nodes.h ----------------- */

/* What other clients do after the break, before the recovery reads the node.
 * NULL: they have done it, or there is nothing to do. */
static void (*others_act)(model_server *s);

static void run_others_before_recovery(model_server *s, model_link *l,
                                       int32_t op, const char *path)
{
  (void)l;
  (void)path;
  if (op != LK_OPCODE_MULTI || others_act == NULL)
    return;
  others_act(s);
  others_act = NULL;
}

static void others_do_nothing(model_server *s)
{
  (void)s;
}

static void others_create(model_server *s)
{
  model_create(s, "/d/n");
}

static void others_delete(model_server *s)
{
  if (node("/d/n") != NULL)
    model_delete(s, "/d/n");
}

static void others_create_sibling(model_server *s)
{
  model_create(s, "/d/other");
}

static void others_replace(model_server *s)
{
  others_delete(s);
  others_create(s);
}

static void others_write(model_server *s)
{
  model_set(s, "/d/n", "other");
}

static void others_write_our_data(model_server *s)
{
  model_set(s, "/d/n", "ours");
}

static void others_write_twice(model_server *s)
{
  others_write_our_data(s);
  others_write(s);
}

static void others_deny_reads(model_server *s)
{
  model_deny(s, "/d/n", LK_PERM_READ);
}

enum { NOT_EXECUTED = false, EXECUTED = true, ABSENT = false, EXISTS = true };

/* The connection breaks at the next request, before or after it is executed.
 * Then the others act. */
static void break_at_next_request(bool executed,
                                  void (*others)(model_server *s))
{
  link->requests = 0;
  link->cut_at = 1;
  link->cut_after = executed;
  others_act = others;
  server.before = run_others_before_recovery;
}

static int create_reliably(int flags, bool sole)
{
  int err = lk_create_reliable(link->client, "/d/n", lk_text("ours"), NULL,
                               flags, sole, NULL, on_created, created_path);

  return err != 0 ? err : wait_for_result();
}

/* Starts a create, whose result is awaited by the test. */
static void begin_reliable_create(int flags, bool sole, const lk_call *call)
{
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text("x"), NULL,
                                      flags, sole, call, on_created,
                                      created_path),
                   0);
  result = NOT_YET;
  callbacks = 0;
}

typedef struct create_case {
  int flags;
  bool sole;
  bool existed;  /* the node existed before the call */
  bool executed; /* the first request is executed, and its reply is lost */
  void (*others)(model_server *s);
  int err;
  bool exists; /* the node exists in the end */
} create_case;

static void check_create(const create_case *x)
{
  begin_with_zxid(x->existed);
  break_at_next_request(x->executed, x->others);
  ck_assert_int_eq(create_reliably(x->flags, x->sole), x->err);
  ck_assert_ptr_null(others_act);
  ck_assert(x->exists == (node("/d/n") != NULL));
  if (x->err == 0) {
    ck_assert_str_eq(created_path, "/d/n");
    ck_assert_int_eq(last_stat.czxid, node("/d/n")->stat.czxid);
  }
  finish();
}

START_TEST(reliable_create_completes_as_documented)
{
  enum { P = LK_PERSISTENT, E = LK_EPHEMERAL };

  static const create_case all[] = {
      {P, SHARED, ABSENT, NOT_EXECUTED, others_do_nothing, 0, EXISTS},
      {P, SHARED, ABSENT, EXECUTED, others_do_nothing, LK_ERR_IN_DOUBT, EXISTS},
      {P, SHARED, EXISTS, NOT_EXECUTED, others_do_nothing, LK_ERR_NODE_EXISTS,
       EXISTS},
      {P, SHARED, EXISTS, EXECUTED, others_do_nothing, LK_ERR_NODE_EXISTS,
       EXISTS},
      {P, SHARED, ABSENT, NOT_EXECUTED, others_create, LK_ERR_IN_DOUBT, EXISTS},
      {P, SHARED, ABSENT, NOT_EXECUTED, others_create_sibling, LK_ERR_IN_DOUBT,
       ABSENT},
      {P, SHARED, ABSENT, EXECUTED, others_delete, LK_ERR_IN_DOUBT, ABSENT},
      {P, SHARED, EXISTS, NOT_EXECUTED, others_deny_reads, LK_ERR_IN_DOUBT,
       EXISTS},
      {P, SOLE, ABSENT, NOT_EXECUTED, others_do_nothing, 0, EXISTS},
      {P, SOLE, ABSENT, EXECUTED, others_do_nothing, 0, EXISTS},
      {P, SOLE, EXISTS, NOT_EXECUTED, others_do_nothing, LK_ERR_NODE_EXISTS,
       EXISTS},
      {P, SOLE, ABSENT, NOT_EXECUTED, others_create_sibling, 0, EXISTS},
      {E, SHARED, ABSENT, NOT_EXECUTED, others_do_nothing, 0, EXISTS},
      {E, SHARED, ABSENT, EXECUTED, others_do_nothing, 0, EXISTS},
      {E, SHARED, EXISTS, NOT_EXECUTED, others_do_nothing, LK_ERR_NODE_EXISTS,
       EXISTS},
      {E, SHARED, ABSENT, NOT_EXECUTED, others_create, LK_ERR_NODE_EXISTS,
       EXISTS},
      {E, SHARED, ABSENT, NOT_EXECUTED, others_create_sibling, 0, EXISTS},
      {E, SOLE, ABSENT, EXECUTED, others_do_nothing, 0, EXISTS},
      {LK_CONTAINER, SHARED, ABSENT, EXECUTED, others_do_nothing,
       LK_ERR_IN_DOUBT, EXISTS},
      {LK_CONTAINER, SOLE, ABSENT, EXECUTED, others_do_nothing, 0, EXISTS},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_create(&all[i]);
}
END_TEST

/* The first write of a client is lost and not executed. */
typedef struct first_write {
  int (*call)(bool sole);
  bool sole;
  const char *data;     /* data of the node; NULL: it does not exist */
  int err_without_zxid; /* the result if the client had no reply before */
  int err_with_zxid;    /* the result if it had one */
} first_write;

static int first_create(bool sole)
{
  return create_reliably(LK_PERSISTENT, sole);
}

static int first_set(bool sole)
{
  int err = lk_set_reliable(link->client, "/d/n", lk_text("ours"), 1, sole,
                            NULL, on_stat, NULL);

  return err != 0 ? err : wait_for_result();
}

static int first_delete(bool sole)
{
  int err = lk_delete_reliable(link->client, "/d/n", ANY_VERSION, sole, NULL,
                               on_done, NULL);

  return err != 0 ? err : wait_for_result();
}

static void check_first_write(const first_write *x, bool has_zxid)
{
  bool exists = x->data != NULL;

  begin();
  model_create(&server, "/d");
  if (exists) {
    model_create(&server, "/d/n");
    model_set(&server, "/d/n", x->data);
  }
  link->requests = 0;
  link->cut_at = 2;            /* the write; a read of "/" is sent before it */
  link->cut_softly = has_zxid; /* the reply to the read arrives */
  int err = x->call(x->sole);

  ck_assert_int_eq(err, has_zxid ? x->err_with_zxid : x->err_without_zxid);
  if (err == 0)
    exists = x->call != first_delete;
  ck_assert(exists == (node("/d/n") != NULL));
  if (exists && x->call == first_set)
    ck_assert_int_eq(node("/d/n")->stat.version, err == 0 ? 2 : 1);
  finish();
}

START_TEST(client_without_a_zxid_does_not_claim_a_node)
{
  enum { DOUBT = LK_ERR_IN_DOUBT, FOUND = LK_ERR_NODE_EXISTS };

  static const first_write all[] = {
      {first_create, SHARED, NULL, DOUBT, 0},
      {first_create, SHARED, "ours", DOUBT, FOUND},
      {first_create, SOLE, NULL, 0, 0},
      {first_create, SOLE, "ours", DOUBT, FOUND},
      {first_create, SOLE, "other", DOUBT, FOUND},
      {first_set, SHARED, "other", DOUBT, 0},
      {first_set, SOLE, "other", 0, 0},
      {first_set, SOLE, "ours", 0, 0},
      {first_delete, SHARED, "", DOUBT, 0},
      {first_delete, SOLE, "", 0, 0},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    const bool has_zxid = true;

    check_first_write(&all[i], !has_zxid);
    check_first_write(&all[i], has_zxid);
  }
}
END_TEST

/* The node was created before the call, but after the last reply that the
 * client received. */
START_TEST(node_created_before_the_call_is_not_taken_for_ours)
{
  begin_without_node();
  model_create(&server, "/d/n");
  break_at_next_request(NOT_EXECUTED, others_do_nothing);
  ck_assert_int_eq(create_reliably(LK_PERSISTENT, SOLE), LK_ERR_NODE_EXISTS);
  finish();
  begin_without_node();
  model_create(&server, "/d/n");
  model_set(&server, "/d/n", "other");
  break_at_next_request(NOT_EXECUTED, others_do_nothing);
  ck_assert_int_eq(first_set(SOLE), 0);
  ck_assert_int_eq(node("/d/n")->stat.version, 2);
  break_at_next_request(NOT_EXECUTED, others_do_nothing);
  ck_assert_int_eq(first_delete(SOLE), 0);
  ck_assert_ptr_null(node("/d/n"));
  finish();
}
END_TEST

START_TEST(recovery_read_and_its_transaction_are_one_write)
{
  begin_without_node();
  break_at_next_request(EXECUTED, NULL);
  ck_assert_int_eq(create_reliably(LK_PERSISTENT, SOLE), 0);
  ck_assert(model_check_log(link, "create2 | multi getData") ||
            model_check_log(link, "create2 multi getData"));
  finish();
}
END_TEST

START_TEST(sequential_create_stays_in_doubt)
{
  begin_without_node();
  break_at_next_request(EXECUTED, NULL);
  ck_assert_int_eq(create_reliably(LK_SEQUENTIAL, SOLE), LK_ERR_IN_DOUBT);
  break_at_next_request(NOT_EXECUTED, NULL);
  ck_assert_int_eq(create_reliably(LK_SEQUENTIAL | LK_EPHEMERAL, SHARED),
                   LK_ERR_IN_DOUBT);
  finish();
}
END_TEST

static void others_expire_session(model_server *s)
{
  model_expire(s, link->session);
}

START_TEST(reliable_create_of_an_ephemeral_node_ends_with_its_session)
{
  begin_without_node();
  break_at_next_request(EXECUTED, others_expire_session);
  ck_assert_int_eq(create_reliably(LK_EPHEMERAL, SHARED),
                   LK_ERR_SESSION_EXPIRED);
  finish();
  begin_without_node();
  break_at_next_request(EXECUTED, others_expire_session);
  ck_assert_int_eq(create_reliably(LK_PERSISTENT, SOLE), 0);
  finish();
}
END_TEST

typedef struct set_case {
  int32_t version;
  bool sole;
  bool executed; /* the first request is executed, and its reply is lost */
  void (*others)(model_server *s);
  int err;
  int32_t final_version; /* of the node */
} set_case;

static void check_set(const set_case *x)
{
  begin_with_node();
  break_at_next_request(x->executed, x->others);
  ck_assert_int_eq(lk_set_reliable(link->client, "/d/n", lk_text("ours"),
                                   x->version, x->sole, NULL, on_stat, NULL),
                   0);
  ck_assert_int_eq(wait_for_result(), x->err);
  ck_assert_ptr_null(others_act);
  if (node("/d/n") != NULL)
    ck_assert_int_eq(node("/d/n")->stat.version, x->final_version);
  if (x->err == 0)
    ck_assert_int_eq(last_stat.version, x->final_version);
  finish();
}

START_TEST(reliable_set_completes_as_documented)
{
  static const set_case all[] = {
      {0, SHARED, NOT_EXECUTED, others_do_nothing, 0, 1},
      {0, SHARED, EXECUTED, others_do_nothing, LK_ERR_IN_DOUBT, 1},
      {0, SHARED, NOT_EXECUTED, others_write_our_data, LK_ERR_IN_DOUBT, 1},
      {0, SHARED, NOT_EXECUTED, others_write, LK_ERR_BAD_VERSION, 1},
      {0, SHARED, EXECUTED, others_write, LK_ERR_IN_DOUBT, 2},
      {0, SHARED, NOT_EXECUTED, others_write_twice, LK_ERR_IN_DOUBT, 2},
      {0, SHARED, NOT_EXECUTED, others_delete, LK_ERR_IN_DOUBT, 0},
      {0, SHARED, NOT_EXECUTED, others_replace, LK_ERR_IN_DOUBT, 0},
      {0, SHARED, EXECUTED, others_deny_reads, LK_ERR_IN_DOUBT, 1},
      {0, SOLE, EXECUTED, others_do_nothing, 0, 1},
      {0, SOLE, NOT_EXECUTED, others_do_nothing, 0, 1},
      {ANY_VERSION, SHARED, NOT_EXECUTED, others_do_nothing, 0, 1},
      {ANY_VERSION, SHARED, EXECUTED, others_do_nothing, LK_ERR_IN_DOUBT, 1},
      {ANY_VERSION, SHARED, NOT_EXECUTED, others_write, LK_ERR_IN_DOUBT, 1},
      {ANY_VERSION, SOLE, EXECUTED, others_do_nothing, 0, 1},
      {ANY_VERSION, SOLE, NOT_EXECUTED, others_delete, LK_ERR_NO_NODE, 0},
      {1, SHARED, NOT_EXECUTED, others_do_nothing, LK_ERR_BAD_VERSION, 0},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_set(&all[i]);
}
END_TEST

typedef struct delete_case {
  int32_t version;
  bool sole;
  bool executed; /* the first request is executed, and its reply is lost */
  void (*others)(model_server *s);
  int err;
  bool exists; /* the node exists in the end */
} delete_case;

static void check_delete(const delete_case *x)
{
  begin_with_node();
  break_at_next_request(x->executed, x->others);
  ck_assert_int_eq(lk_delete_reliable(link->client, "/d/n", x->version, x->sole,
                                      NULL, on_done, NULL),
                   0);
  ck_assert_int_eq(wait_for_result(), x->err);
  ck_assert_ptr_null(others_act);
  ck_assert(x->exists == (node("/d/n") != NULL));
  finish();
}

START_TEST(reliable_delete_completes_as_documented)
{
  static const delete_case all[] = {
      {ANY_VERSION, SHARED, NOT_EXECUTED, others_do_nothing, 0, ABSENT},
      {ANY_VERSION, SHARED, EXECUTED, others_do_nothing, LK_ERR_IN_DOUBT,
       ABSENT},
      {ANY_VERSION, SHARED, NOT_EXECUTED, others_delete, LK_ERR_IN_DOUBT,
       ABSENT},
      {ANY_VERSION, SHARED, NOT_EXECUTED, others_replace, LK_ERR_IN_DOUBT,
       EXISTS},
      {ANY_VERSION, SHARED, EXECUTED, others_create, LK_ERR_IN_DOUBT, EXISTS},
      {ANY_VERSION, SOLE, EXECUTED, others_do_nothing, 0, ABSENT},
      {ANY_VERSION, SOLE, NOT_EXECUTED, others_do_nothing, 0, ABSENT},
      {0, SHARED, NOT_EXECUTED, others_write, LK_ERR_BAD_VERSION, EXISTS},
      {0, SOLE, EXECUTED, others_do_nothing, 0, ABSENT},
      {7, SHARED, NOT_EXECUTED, others_do_nothing, LK_ERR_BAD_VERSION, EXISTS},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_delete(&all[i]);
}
END_TEST

/* The deletes of the remaining leaves are sent with the list of the
 * directory. */
START_TEST(leaves_are_deleted_while_a_directory_is_listed)
{
  begin();
  create_wide_tree(300, 1);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted_count, 303);
  ck_assert_uint_eq(writes, 5);
  ck_assert_uint_eq(deletes_in_write[3], 45);
  finish();
}
END_TEST

START_TEST(node_created_by_the_last_zxid_seen_is_deleted)
{
  begin();
  model_create(&server, "/d");
  model_create(&server, "/d/n");
  ck_assert_int_eq(lk_server_sync(link->client, "/d", NULL, on_done, NULL), 0);
  ck_assert_int_eq(wait_for_result(), 0);
  break_at_next_request(NOT_EXECUTED, others_do_nothing);
  ck_assert_int_eq(lk_delete_reliable(link->client, "/d/n", ANY_VERSION, SHARED,
                                      NULL, on_done, NULL),
                   0);
  ck_assert_int_eq(wait_for_result(), 0);
  ck_assert_ptr_null(node("/d/n"));
  finish();
}
END_TEST

static const int32_t give_up_ms = T / 4;

enum { NO_TIMEOUT = 0 }; /* a value of lk_call.timeout_ms */

/* Sends a create `after_ms` after a request that was answered. All servers
 * vanish before the reply. The client gives up its session, and then the
 * servers are back. */
static void give_up_session(int64_t timeout_ms, int64_t after_ms,
                            bool one_session)
{
  lk_client_config config = {.size = sizeof config,
                             .session_timeout_ms = T,
                             .give_up_ms = give_up_ms,
                             .one_session = one_session,
                             .mem = &mem.mem};
  lk_call call = {.size = sizeof call, .timeout_ms = timeout_ms};

  begin_without_node();
  lk_client_free(link->client);
  link = model_client(&server, &config);
  model_turn(&server);
  ck_assert_int_eq(
      lk_delete(link->client, "/none", ANY_VERSION, NULL, on_done, NULL), 0);
  ck_assert_int_eq(wait_for_result(), LK_ERR_NO_NODE);
  link->log[0] = '\0';
  link->frozen = true;
  result = NOT_YET;
  callbacks = 0;
  model_run(&server, after_ms);
  begin_reliable_create(LK_PERSISTENT, SOLE, &call);
  model_turn(&server);
  server.down = true;
  model_drop(link);
  link->frozen = false;
  model_run(&server, give_up_ms + 1 - after_ms);
  server.down = false;
}

static void give_up_session_during_create(int64_t timeout_ms, int64_t after_ms)
{
  const bool one_session = false;

  give_up_session(timeout_ms, after_ms, one_session);
}

START_TEST(reliable_write_does_not_wait_if_its_client_has_one_session)
{
  const bool one_session = true;

  give_up_session(NO_TIMEOUT, 0, one_session);
  ck_assert_int_eq(lk_client_state(link->client), LK_STATE_CLOSED);
  ck_assert_int_eq(result, LK_ERR_CLOSED);
  ck_assert_uint_eq(callbacks, 1);
  finish();
}
END_TEST

/* The servers keep the abandoned session for a timeout and a tick, and may
 * execute the write until then. */
START_TEST(reliable_write_waits_for_the_end_of_an_abandoned_session)
{
  give_up_session_during_create(NO_TIMEOUT, 0);
  int64_t left = lk_client_abandoned_session_end(link->client) - server.now;

  ck_assert_int_eq(left, T + T / 4 - 1);
  model_run(&server, left - 1);
  ck_assert_int_eq(lk_client_state(link->client), LK_STATE_CONNECTED);
  ck_assert(model_check_log(link, "create2"));
  ck_assert_int_eq(result, NOT_YET);
  model_create(&server, "/d/n"); /* an old server executes the write late */
  model_set(&server, "/d/n", "x");
  model_run(&server, 1);
  ck_assert(model_check_log(link, "multi getData"));
  ck_assert_int_eq(result, 0);
  ck_assert_uint_eq(callbacks, 1);
  finish();
}
END_TEST

/* The server counts from the last request that it received, with or without a
   reply. */
START_TEST(abandoned_session_ends_a_timeout_after_the_last_bytes_sent)
{
  give_up_session_during_create(NO_TIMEOUT, T / 8);
  int64_t left = lk_client_abandoned_session_end(link->client) - server.now;

  ck_assert_int_eq(left, T + T / 4 + T / 8 - 1);
  model_run(&server, left - 1);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 1);
  ck_assert_int_eq(result, 0);
  finish();
}
END_TEST

START_TEST(the_wait_for_a_session_ends_at_the_deadline)
{
  give_up_session_during_create(T, 0);
  model_run(&server, T - T / 4 - 2);
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(result, LK_ERR_IN_DOUBT);
  ck_assert(model_check_log(link, "create2"));
  finish();
}
END_TEST

/* A write that begins without a connection was certainly not sent. If the
 * session expires, only an ephemeral create ends with that error. */
START_TEST(unsent_write_is_sent_in_the_next_session_unless_ephemeral)
{
  static const int both[] = {LK_PERSISTENT, LK_EPHEMERAL};

  for (size_t i = 0; i < 2; i++) {
    int flags = both[i];

    begin_without_node();
    server.down = true;
    model_drop(link);
    model_turn(&server);
    begin_reliable_create(flags, SHARED, NULL);
    model_expire(&server, link->last_session);
    server.down = false;
    model_run(&server, T / 2);
    ck_assert_int_eq(result,
                     flags == LK_PERSISTENT ? 0 : LK_ERR_SESSION_EXPIRED);
    ck_assert_int_eq(lk_client_abandoned_session_end(link->client), INT64_MIN);
    ck_assert_uint_eq(callbacks, 1);
    ck_assert(model_check_log(
        link, flags == LK_PERSISTENT ? "multi exists getData | create2" : ""));
    ck_assert((node("/d/n") != NULL) == (flags == LK_PERSISTENT));
    finish();
  }
}
END_TEST

START_TEST(refused_credentials_end_a_pause_at_once)
{
  for (int is_tree = 0; is_tree < 2; is_tree++) {
    begin_with_node();
    link->requests = 0;
    link->throttle_at = 1;
    link->answer_at = 2;
    link->answer_err = LK_ERR_AUTH_REQUIRED;
    ck_assert_int_eq(is_tree
                         ? lk_delete_recursive2(link->client, "/d/n", NULL,
                                                continue_until_cancelled,
                                                on_deleted, NULL)
                         : lk_delete_reliable(link->client, "/d/n", ANY_VERSION,
                                              SOLE, NULL, on_done, NULL),
                     0);
    result = NOT_YET;
    callbacks = 0;
    model_turn(&server);
    ck_assert_int_eq(result, NOT_YET);
    ck_assert_int_eq(lk_exists(link->client, "/d", NULL, NULL, NULL), 0);
    model_turn(&server);
    ck_assert_int_eq(lk_client_state(link->client), LK_STATE_CLOSED);
    ck_assert_int_eq(result, LK_ERR_AUTH_FAILED);
    ck_assert_uint_eq(callbacks, 1);
    finish();
  }
}
END_TEST

START_TEST(unsent_write_is_sent_after_the_reconnect)
{
  begin_without_node();
  server.down = true;
  model_drop(link);
  model_turn(&server);
  begin_reliable_create(LK_PERSISTENT, SHARED, NULL);
  model_run(&server, T / 4);
  ck_assert_int_eq(result, NOT_YET);
  server.down = false;
  ck_assert_int_eq(wait_for_result(), 0);
  finish();
}
END_TEST

START_TEST(recovery_below_a_chroot_reads_the_same_nodes)
{
  static const char *const roots[] = {"/d", "/none"};

  for (size_t i = 0; i < 2; i++) {
    bool chroot_exists = i == 0;

    begin_without_node();
    use_chroot(roots[i]);
    ck_assert_int_eq(
        lk_delete(link->client, "/other", ANY_VERSION, NULL, on_done, NULL), 0);
    ck_assert_int_eq(wait_for_result(), LK_ERR_NO_NODE);
    break_at_next_request(NOT_EXECUTED, others_do_nothing);
    ck_assert_int_eq(lk_create_reliable(link->client, "/n", lk_text(""), NULL,
                                        0, !chroot_exists, NULL, on_created,
                                        created_path),
                     0);
    ck_assert_int_eq(wait_for_result(), chroot_exists ? 0 : LK_ERR_NO_NODE);
    ck_assert_str_eq(created_path, chroot_exists ? "/n" : "");
    ck_assert(!chroot_exists || node("/d/n") != NULL);
    finish();
  }
}
END_TEST

START_TEST(interrupted_recovery_of_a_write_starts_again)
{
  for (unsigned i = 0; i < 6; i++) {
    begin_with_node();
    link->requests = 0;
    link->cut_at = 1;
    link->cut_after = true;
    ck_assert_int_eq(lk_delete_reliable(link->client, "/d/n", ANY_VERSION, SOLE,
                                        NULL, on_done, NULL),
                     0);
    result = NOT_YET;
    callbacks = 0;
    model_turn(&server);
    while (link->requests < 1)
      model_run(&server, 1);
    /* The recovery is interrupted, too. */
    link->requests = 0;
    link->cut_at = 1 + i / 2;
    link->cut_after = i % 2 == 0;
    ck_assert_int_eq(wait_for_result(), 0);
    finish();
  }
}
END_TEST

START_TEST(throttled_recovery_of_a_write_is_repeated)
{
  for (unsigned at = 1; at < 5; at++) {
    begin_with_node();
    link->requests = 0;
    link->throttle_at = at;
    link->cut_at = at == 1 ? 2 : 1; /* the set that is not throttled */
    link->cut_after = true;
    ck_assert_int_eq(lk_set_reliable(link->client, "/d/n", lk_text("x"), 0,
                                     true, NULL, on_stat, NULL),
                     0);
    ck_assert_int_eq(wait_for_result(), 0);
    ck_assert_int_eq(last_stat.version, 1);
    /* A read without a transaction before it proves nothing. */
    if (at == 2 || at == 3)
      ck_assert_uint_eq(model_count(link, "multi"), 2);
    finish();
  }
}
END_TEST

/* The set may still be executed behind such a transaction. */
START_TEST(write_is_not_repeated_behind_a_transaction_that_was_not_committed)
{
  begin_with_node();
  link->requests = 0;
  link->cut_at = 1; /* the set */
  link->multi_err = LK_ERR_SYSTEM;
  ck_assert_int_eq(lk_set_reliable(link->client, "/d/n", lk_text("x"), 0, true,
                                   NULL, on_stat, NULL),
                   0);
  ck_assert_int_eq(wait_for_result(), LK_ERR_SYSTEM);
  ck_assert_uint_eq(model_count(link, "setData"), 1);
  finish();
}
END_TEST

START_TEST(deadline_ends_a_write_in_doubt)
{
  lk_call call = {.size = sizeof call, .timeout_ms = 500};

  begin_without_node();
  link->requests = 0;
  link->cut_at = 1;
  begin_reliable_create(LK_PERSISTENT, SOLE, &call);
  model_turn(&server);
  server.down = true;
  model_drop(link);
  model_run(&server, 500); /* timeouts are rounded up */
  ck_assert_int_eq(result, NOT_YET);
  model_run(&server, 1);
  ck_assert_int_eq(result, LK_ERR_IN_DOUBT);
  finish();
}
END_TEST

/* The calls whose next request is refused, since their deadline has passed. */
static const lk_call brief = {
    .size = sizeof brief, .timeout_ms = 100, .repeat = true};
static const lk_call brief_write = {.size = sizeof brief, .timeout_ms = 100};

static int start_create_with_parents(void)
{
  return lk_create_with_parents(link->client, "/a/b", lk_text(""), NULL,
                                LK_PERSISTENT, NULL, &brief_write, on_created,
                                created_path);
}

static int start_delete_of_tree(void)
{
  return lk_delete_recursive2(link->client, "/t", &brief, NULL, on_deleted,
                              NULL);
}

static int start_reliable_create(void)
{
  return lk_create_reliable(link->client, "/d/n", lk_text(""), NULL,
                            LK_PERSISTENT, SOLE, &brief_write, on_created,
                            created_path);
}

static void pass_deadline_at_reply(lk_client *c, const lk_reply *reply,
                                   void *arg)
{
  (void)c;
  (void)reply;
  (void)arg;
  server.now += 2 * brief.timeout_ms;
}

static void pass_deadline_at_loss(lk_client *c, lk_state state, int err,
                                  void *arg)
{
  (void)c;
  (void)err;
  (void)arg;
  if (state == LK_STATE_SUSPENDED)
    server.now += 2 * brief.timeout_ms;
}

enum { REPLY_ARRIVES = false, REPLY_IS_LOST = true };

/* The deadline passes before the first request completes. */
static void check_refused_step(int (*start)(void), bool reply_is_lost, int err)
{
  lk_listener listener = {.size = sizeof listener,
                          .reply = pass_deadline_at_reply};

  begin_without_node();
  create_tree();
  if (reply_is_lost) {
    listener = (lk_listener){.size = sizeof(lk_listener),
                             .state = pass_deadline_at_loss};
    break_at_next_request(EXECUTED, others_do_nothing);
  }
  lk_client_attach(link->client, &listener);
  link->log[0] = '\0';
  ck_assert_int_eq(start(), 0);
  result = NOT_YET;
  callbacks = 0;
  model_turn(&server);
  ck_assert_int_eq(result, err);
  ck_assert_uint_eq(callbacks, 1);
  ck_assert_ptr_null(strchr(link->log, ' ')); /* one request */
  finish();
}

START_TEST(call_whose_next_request_is_refused_at_its_deadline_completes)
{
  check_refused_step(start_create_with_parents, REPLY_ARRIVES, LK_ERR_DEADLINE);
  check_refused_step(start_delete_of_tree, REPLY_ARRIVES, LK_ERR_DEADLINE);
  check_refused_step(start_delete_of_tree, REPLY_IS_LOST, LK_ERR_IN_DOUBT);
  check_refused_step(start_reliable_create, REPLY_IS_LOST, LK_ERR_IN_DOUBT);
}
END_TEST

START_TEST(create_with_parents_ends_with_its_client)
{
  begin();
  ck_assert_int_eq(lk_create_with_parents(link->client, "/x/y", lk_text(""),
                                          NULL, LK_PERSISTENT, NULL, NULL,
                                          on_created, created_path),
                   0);
  result = NOT_YET;
  ck_assert_int_eq(lk_client_close(link->client, NULL, NULL), 0);
  model_run(&server, T / 4);
  ck_assert_int_eq(result, LK_ERR_NOT_SENT);
  ck_assert_ptr_null(node("/x"));
  finish();
}
END_TEST

START_TEST(unsent_reliable_write_ends_with_its_client)
{
  begin_without_node();
  server.down = true;
  model_drop(link);
  model_turn(&server);
  begin_reliable_create(LK_PERSISTENT, SHARED, NULL);
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_NOT_SENT);
  finish();
  begin_without_node();
  link->requests = 0;
  link->throttle_at = 1;
  begin_reliable_create(LK_PERSISTENT, SHARED, NULL);
  model_turn(&server);
  ck_assert_int_eq(result, NOT_YET);
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_NOT_SENT);
  finish();
}
END_TEST

START_TEST(reliable_write_in_doubt_ends_with_its_client)
{
  begin_without_node();
  link->requests = 0;
  link->cut_at = 1;
  begin_reliable_create(LK_PERSISTENT, SHARED, NULL);
  server.down = true;
  model_turn(&server);
  ck_assert_int_eq(result, NOT_YET);
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_CLOSED);
  finish();
}
END_TEST

static void begin_delete_of_tree(void)
{
  lk_call call = {.size = sizeof call, .repeat = true};

  ck_assert_int_eq(
      lk_delete_recursive2(link->client, "/t", &call, NULL, on_deleted, NULL),
      0);
  result = NOT_YET;
  model_turn(&server);
  ck_assert_int_eq(result, NOT_YET);
}

START_TEST(delete_of_a_tree_ends_with_its_client)
{
  begin();
  create_tree();
  server.down = true;
  model_drop(link);
  begin_delete_of_tree();
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_NOT_SENT);
  finish();

  /* The reply to a delete is lost. */
  begin();
  create_tree();
  link->requests = 0;
  link->cut_at = 1;
  server.down = true;
  begin_delete_of_tree();
  lk_client_free(link->client);
  ck_assert_int_eq(result, LK_ERR_CLOSED);
  finish();
}
END_TEST

START_TEST(client_can_be_freed_in_the_callback_of_a_reliable_write)
{
  begin_without_node();
  callback_frees_client = true;
  break_at_next_request(EXECUTED, NULL);
  ck_assert_int_eq(create_reliably(LK_EPHEMERAL, SHARED), 0);
  ck_assert_ptr_null(link->client);
  finish();
}
END_TEST

/* ---- memory ------------------------------------------------------------ */

/* Starts a call of each kind until one is refused, and counts the others. */
static int start_one_of_each(unsigned *accepted)
{
  lk_client *c = link->client;
  int err = lk_create_with_parents(c, "/a/b/c", lk_text("x"), lk_acl_read(),
                                   LK_PERSISTENT, &containers, NULL, on_created,
                                   created_path);

  *accepted += err == 0;
  if (err == 0) {
    err = lk_delete_recursive2(c, "/t", NULL, continue_until_cancelled,
                               on_deleted, NULL);
    *accepted += err == 0;
  }
  if (err == 0) {
    err =
        lk_create_reliable(c, "/d/n", lk_text("x"), lk_acl_creator(),
                           LK_PERSISTENT, SOLE, NULL, on_created, created_path);
    *accepted += err == 0;
  }
  return err;
}

/* The n-th allocation fails, or all from the n-th on (`for_good`). Returns
 * whether there were so many. */
static bool run_out_of_memory(size_t n, bool for_good)
{
  unsigned accepted = 0;

  callback_frees_client = false;
  cancel_after = SIZE_MAX;
  outstanding_limit = 0;
  model_init(&server);
  model_create(&server, "/d");
  create_tree();
  failing_mem_init(&mem);
  mem.fail_at = n;
  mem.for_good = for_good;
  if (try_make_client()) {
    model_turn(&server);
    link->requests = 0;
    link->cut_at = 9;
    callbacks = 0;
    int err = start_one_of_each(&accepted);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
    model_run(&server, T / 2);
    lk_client_free(link->client);
    ck_assert_uint_eq(callbacks, accepted);
  }
  bool failed = failing_mem_failed(&mem);

  ck_assert_uint_eq(mem.live, 0);
  model_done(&server);
  return failed;
}

START_TEST(every_allocation_can_fail)
{
  const bool for_good = true;

  for (size_t n = 1; run_out_of_memory(n, !for_good);)
    n++;
  for (size_t n = 1; run_out_of_memory(n, for_good);)
    n++;
}
END_TEST

SUITE("nodes", create_below_existing_parents_is_one_request,
      missing_parents_are_created_in_one_write_with_the_node,
      parents_of_a_long_path_are_requested_in_portions,
      parents_are_requested_though_few_requests_may_be_outstanding,
      refused_parent_ends_the_requests_of_a_long_path,
      lost_connection_ends_the_requests_of_a_long_path,
      parents_can_be_containers_with_their_own_acl,
      containers_are_refused_by_an_old_server,
      deleted_container_parents_are_created_again_ten_times_at_most,
      missing_permission_for_a_parent_is_the_result,
      create_below_an_ephemeral_node_fails_with_its_error,
      missing_root_ends_a_create_with_parents, parents_end_at_the_chroot,
      a_deadline_covers_all_of_a_create,
      deadline_ends_a_create_whose_parents_are_not_created_yet,
      invalid_arguments_are_refused, delete_of_a_leaf_is_one_request,
      delete_of_a_tree_deletes_nothing_else,
      delete_of_a_directory_of_leaves_is_three_writes,
      chain_of_directories_is_deleted_with_three_deletes_a_node,
      chain_of_directories_is_deleted_in_two_writes,
      delete_of_a_deep_tree_keeps_no_paths,
      deletes_of_long_paths_are_at_most_one_megabyte_at_a_time,
      a_deadline_covers_all_of_a_tree,
      zookeeper_node_is_reserved_at_the_root_of_the_servers_only,
      nodes_created_during_a_delete_are_deleted,
      delete_gives_up_when_children_are_created_all_the_time,
      nodes_that_others_delete_meanwhile_are_no_error,
      first_refused_request_ends_the_delete_of_a_tree,
      delete_of_a_tree_can_be_cancelled,
      sixteen_lists_are_requested_at_a_time_at_most,
      with_many_names_in_memory_one_list_is_requested_at_a_time,
      leaves_are_deleted_while_a_directory_is_listed,
      node_created_by_the_last_zxid_seen_is_deleted,
      delete_of_a_tree_respects_the_limit_of_outstanding_requests,
      delete_of_a_tree_with_repeat_continues_after_connection_loss,
      delete_with_a_lost_reply_succeeds_if_the_node_is_gone,
      delete_of_a_tree_without_repeat_ends_with_the_connection,
      each_throttled_request_costs_one_more_request,
      pause_of_a_delete_ends_with_the_client,
      client_can_be_freed_during_the_delete_of_a_tree,
      client_can_be_freed_in_the_callback_of_a_result,
      client_can_be_freed_in_the_progress_callback,
      reliable_create_completes_as_documented,
      client_without_a_zxid_does_not_claim_a_node,
      node_created_before_the_call_is_not_taken_for_ours,
      recovery_read_and_its_transaction_are_one_write,
      sequential_create_stays_in_doubt,
      reliable_create_of_an_ephemeral_node_ends_with_its_session,
      reliable_set_completes_as_documented,
      reliable_delete_completes_as_documented,
      unsent_write_is_sent_after_the_reconnect,
      reliable_write_waits_for_the_end_of_an_abandoned_session,
      reliable_write_does_not_wait_if_its_client_has_one_session,
      abandoned_session_ends_a_timeout_after_the_last_bytes_sent,
      the_wait_for_a_session_ends_at_the_deadline,
      unsent_write_is_sent_in_the_next_session_unless_ephemeral,
      refused_credentials_end_a_pause_at_once,
      recovery_below_a_chroot_reads_the_same_nodes,
      interrupted_recovery_of_a_write_starts_again,
      throttled_recovery_of_a_write_is_repeated,
      write_is_not_repeated_behind_a_transaction_that_was_not_committed,
      deadline_ends_a_write_in_doubt,
      call_whose_next_request_is_refused_at_its_deadline_completes,
      create_with_parents_ends_with_its_client,
      unsent_reliable_write_ends_with_its_client,
      reliable_write_in_doubt_ends_with_its_client,
      delete_of_a_tree_ends_with_its_client,
      client_can_be_freed_in_the_callback_of_a_reliable_write,
      every_allocation_can_fail)
