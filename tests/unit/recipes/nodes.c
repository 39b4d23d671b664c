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
static const char *hosts; /* connect string with a chroot; NULL: without one */

/* The result of the last call. */
static int ended;
static unsigned calls;
static char made[256];
static size_t deleted;
static lk_stat found;
static bool frees; /* the callback of the call frees the client */
static size_t
    patience; /* the delete of a tree is cancelled after this many nodes */

static void on_identity(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)err;
  (void)arg;
}

static bool try_join(void)
{
  lk_client_config config = {.size = sizeof config,
                             .hosts = hosts,
                             .session_timeout_ms = T,
                             .outstanding_limit = outstanding_limit,
                             .mem = &mem.mem};

  link = model_client(&server, &config);
  if (link != NULL) /* the identity that lk_acl_creator stands for */
    (void)lk_add_auth(link->client, "digest", lk_text("me:x"), on_identity,
                      NULL);
  return link != NULL;
}

static void begin(void)
{
  outstanding_limit = 0;
  hosts = NULL;
  frees = false;
  patience = SIZE_MAX;
  failing_mem_init(&mem);
  model_init(&server);
  ck_assert(try_join());
  model_turn(&server);
  link->log[0] = '\0';
}

/* Replaces the client by one with this chroot on the same server. */
static void move_to(const char *chroot)
{
  lk_client_free(link->client);
  hosts = chroot;
  ck_assert(try_join());
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
  ended = err;
  calls++;
  if (frees)
    lk_client_free(link->client);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  ck_assert_ptr_eq(arg, made);
  ck_assert(err == 0 || (path == NULL && stat == NULL));
  snprintf(made, sizeof made, "%s", err == 0 ? path : "");
  if (err == 0)
    found = *stat;
  record_result(err);
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (err == 0)
    found = *stat;
  record_result(err);
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  record_result(err);
}

static void on_deleted(lk_client *c, int err, size_t count, void *arg)
{
  (void)c;
  (void)arg;
  deleted = count;
  record_result(err);
}

static bool more(lk_client *c, size_t count, void *arg)
{
  (void)c;
  (void)arg;
  return count < patience;
}

/* Run until the call completes; returns its result. */
static int outcome(void)
{
  ended = NOT_YET;
  calls = 0;
  model_turn(&server);
  if (ended == NOT_YET)
    model_run(&server, T / 2);
  ck_assert_uint_le(calls, 1);
  return ended;
}

static const sim_node *node(const char *path)
{
  return model_node(&server, path);
}

static void begin_settled(bool node_there)
{
  begin();
  model_create(&server, "/d");
  if (node_there)
    model_create(&server, "/d/n");
  /* After this reply the client has seen the zxid of the create. */
  ck_assert_int_eq(lk_delete(link->client, "/none", -1, NULL, on_done, NULL),
                   0);
  ck_assert_int_eq(outcome(), LK_ERR_NO_NODE);
  link->log[0] = '\0';
}

/* ---- with parents ------------------------------------------------------ */

static const lk_acl few = {
    LK_PERM_READ | LK_PERM_CREATE, {"world", 5}, {"anyone", 6}};
static const lk_acls few_for_all = {&few, 1};
static const lk_parents_config containers = {
    .size = sizeof containers, .containers = true, .acl = &few_for_all};

static int make(const char *path, int flags, const lk_parents_config *parents)
{
  int err = lk_create_with_parents(link->client, path, lk_text("data"),
                                   &lk_acl_creator, flags, parents, NULL,
                                   on_created, made);

  return err != 0 ? err : outcome();
}

START_TEST(create_below_existing_parents_is_one_request)
{
  begin();
  model_create(&server, "/a");
  ck_assert_int_eq(make("/a/b", LK_PERSISTENT, NULL), 0);
  ck_assert(model_check_log(link, "create2"));
  ck_assert_str_eq(made, "/a/b");
  ck_assert_int_eq(make("/a/b", LK_PERSISTENT, NULL), LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(make("/c", LK_PERSISTENT, NULL), 0);
  finish();
}
END_TEST

START_TEST(missing_parents_are_created_in_one_write_with_the_node)
{
  begin();
  model_create(&server, "/a");
  ck_assert_int_eq(make("/a/b/c/d-", LK_SEQUENTIAL, NULL), 0);
  ck_assert(model_check_log(link, "create2 | create create create create2"));
  ck_assert_str_eq(made, "/a/b/c/d-0000000000");
  ck_assert_int_eq(found.czxid, node(made)->stat.czxid);
  ck_assert_int_eq(node("/a/b")->stat.data_length, 0);
  ck_assert(!node("/a/b")->container);
  ck_assert_str_eq(model_acl(&server, "/a/b/c"), "31 world anyone");
  ck_assert_int_eq(node(made)->stat.data_length, 4);
  ck_assert_str_eq(model_acl(&server, made),
                   "31 digest me:xSt7uiiGSJ+hX0ohMyxaLcULzA0=");
  finish();
}
END_TEST

START_TEST(parents_can_be_containers_with_their_own_acl)
{
  begin();
  ck_assert_int_eq(make("/a/b/c", LK_EPHEMERAL, &containers), 0);
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
  ck_assert_int_eq(make("/a/b/c", 0, &containers), LK_ERR_UNIMPLEMENTED);
  finish();
}
END_TEST

static unsigned deletions_left;

/* Deletes the directory before the create of the node. */
static void delete_before(model_server *s, model_link *l, int32_t op,
                          const char *path)
{
  (void)l;
  if (op != LK_OPCODE_CREATE2 || deletions_left == 0 || node("/a/b") == NULL)
    return;
  ck_assert_str_eq(path, "/a/b/c");
  deletions_left--;
  model_delete(s, "/a/b");
}

START_TEST(container_parents_that_a_server_deletes_are_created_again)
{
  begin();
  deletions_left = 3;
  server.before = delete_before;
  ck_assert_int_eq(make("/a/b/c", 0, &containers), 0);
  ck_assert_uint_eq(deletions_left, 0);
  finish();
}
END_TEST

START_TEST(deleted_container_parents_are_created_again_ten_times_at_most)
{
  begin();
  deletions_left = 100;
  server.before = delete_before;
  ck_assert_int_eq(make("/a/b/c", 0, &containers), LK_ERR_NO_NODE);
  ck_assert_uint_eq(deletions_left, 90);
  finish();
}
END_TEST

START_TEST(missing_permission_for_a_parent_is_the_result)
{
  begin();
  model_deny(&server, "/", LK_PERM_CREATE);
  ck_assert_int_eq(make("/a/b/c", 0, NULL), LK_ERR_NO_AUTH);
  model_deny(&server, "/", 0);
  model_create(&server, "/a");
  model_deny(&server, "/", LK_PERM_CREATE);
  ck_assert_int_eq(make("/a/b/c", 0, NULL), 0); /* "/a" exists */
  ck_assert_int_eq(make("/z", 0, NULL), LK_ERR_NO_AUTH);
  finish();
}
END_TEST

START_TEST(create_below_an_ephemeral_node_fails_with_its_error)
{
  begin();
  ck_assert_int_eq(make("/e", LK_EPHEMERAL, NULL), 0);
  ck_assert_int_eq(make("/e/x/y", 0, NULL), LK_ERR_NO_CHILDREN_FOR_EPHEMERALS);
  finish();
}
END_TEST

/* A server answers so where there is no chroot. */
START_TEST(missing_root_ends_a_create_with_parents)
{
  begin();
  link->answer_at = 2;
  link->answer_err = LK_ERR_NO_NODE;
  link->requests = 0;
  server.before = delete_before;
  deletions_left = 1; /* so that the node is not there either */
  model_create(&server, "/a");
  ck_assert_int_eq(make("/a/b/c", 0, NULL), LK_ERR_NO_NODE);
  ck_assert_uint_eq(model_count(link, "create2"), 2);
  finish();
}
END_TEST

START_TEST(parents_end_at_the_chroot)
{
  begin();
  move_to("x/app");
  ck_assert_int_eq(make("/a/b", 0, NULL), LK_ERR_NO_NODE);
  ck_assert(model_check_log(link, "create2 | create create2"));
  ck_assert_ptr_null(node("/app"));
  model_create(&server, "/app");
  ck_assert_int_eq(make("/a/b", 0, NULL), 0);
  ck_assert_str_eq(made, "/a/b");
  ck_assert_ptr_nonnull(node("/app/a/b"));
  finish();
}
END_TEST

/* Only the first write is answered. */
static void freeze(model_server *s, model_link *l, const char *names)
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
                                          NULL, 0, NULL, &call, on_created,
                                          made),
                   0);
  ended = NOT_YET;
  model_run(&server, 99);
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(ended, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(create_may_pass_its_deadline_before_its_parents_exist)
{
  lk_call call = {.size = sizeof call, .timeout_ms = 100};

  begin();
  server.wrote = freeze;
  ck_assert_int_eq(lk_create_with_parents(link->client, "/a/b/c", lk_text(""),
                                          NULL, 0, NULL, &call, on_created,
                                          made),
                   0);
  server.clock_step_ms = 1;
  ended = NOT_YET;
  model_turn(&server);
  server.clock_step_ms = 0;
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 100);
  ck_assert_int_eq(ended, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(invalid_arguments_are_refused)
{
  lk_call call = {.size = sizeof call, .repeat = true};
  lk_parents_config parents = {0};

  begin_settled(false);
  ck_assert_int_eq(make("a/b", 0, NULL), LK_ERR_BAD_PATH);
  ck_assert_int_eq(make("", 0, NULL), LK_ERR_BAD_PATH);
  ck_assert_int_eq(make(NULL, 0, NULL), LK_ERR_BAD_PATH);
  ck_assert_int_eq(make("/a", 99, NULL), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(make("/a", 0, &parents), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_create_with_parents(link->client, "/a", lk_text(""), NULL,
                                          0, NULL, &call, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive(link->client, "/", NULL, NULL, on_deleted, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive(link->client, "/zookeeper", NULL, NULL, NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_delete_recursive(link->client, "/zookeeper/quota", NULL,
                                       NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_delete_recursive(link->client, "x", NULL, NULL, NULL, NULL),
      LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_set_reliable(link->client, "/x", lk_text(""), -2, false,
                                   NULL, NULL, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert(model_check_log(link, ""));
  finish();
}
END_TEST

/* ---- trees ------------------------------------------------------------- */

static int delete_tree_with(const char *path, bool repeat)
{
  lk_call call = {.size = sizeof call, .repeat = repeat};
  int err =
      lk_delete_recursive(link->client, path, &call, more, on_deleted, NULL);

  return err != 0 ? err : outcome();
}

static int delete_tree(const char *path)
{
  return delete_tree_with(path, false);
}

/* A tree of 13 nodes. */
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
  ck_assert_uint_eq(deleted, 1);
  ck_assert_int_eq(delete_tree("/t/a"), LK_ERR_NO_NODE);
  ck_assert_uint_eq(deleted, 0);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_deletes_nothing_else)
{
  begin();
  create_tree();
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted, 13);
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
  ck_assert_uint_eq(deleted, 4);
  finish();
}
END_TEST

START_TEST(chain_of_directories_is_deleted_in_one_write)
{
  char path[64] = "";

  begin();
  for (int i = 0; i < 10; i++) {
    strcat(path, "/n");
    model_create(&server, path);
  }
  ck_assert_int_eq(delete_tree("/n"), 0);
  ck_assert_uint_eq(deleted, 10);
  /* On the way to the leaf, each list is followed by that of the next directory
     and by the delete of this one. */
  ck_assert_uint_eq(model_count(link, "getChildren2"), 9);
  ck_assert_ptr_nonnull(strstr(link->log,
                               "| delete delete delete delete delete "
                               "delete delete delete delete "
                               "delete"));
  finish();
}
END_TEST

/* Only the requests of the first write are answered. */
static void freeze_list(model_server *s, model_link *l, const char *names)
{
  (void)s;
  l->frozen = strstr(names, "getChildren2") != NULL;
}

static void delete_tree_until(int64_t timeout_ms)
{
  lk_call call = {
      .size = sizeof call, .timeout_ms = timeout_ms, .repeat = true};

  ck_assert_int_eq(
      lk_delete_recursive(link->client, "/t", &call, NULL, on_deleted, NULL),
      0);
  ended = NOT_YET;
  model_run(&server, timeout_ms - 1);
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(ended, LK_ERR_DEADLINE);
}

START_TEST(a_deadline_covers_all_of_a_tree)
{
  begin();
  create_tree();
  server.wrote = freeze_list;
  delete_tree_until(100);
  finish();
  /* The deadline also ends a pause, and the requests after it. */
  begin();
  create_tree();
  link->requests = 0;
  link->throttle_at = 1;
  delete_tree_until(50);
  finish();
  begin();
  create_tree();
  link->requests = 0;
  link->throttle_at = 1;
  server.wrote = freeze_list;
  delete_tree_until(200);
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
  move_to("x/app");
  ck_assert_int_eq(delete_tree("/zookeeper"), 0);
  ck_assert_ptr_null(node("/app/zookeeper"));
  ck_assert_int_eq(delete_tree("/"), LK_ERR_BAD_ARGUMENT);
  move_to("x/zookeeper");
  ck_assert_int_eq(delete_tree("/quota"), LK_ERR_BAD_ARGUMENT);
  finish();
}
END_TEST

static unsigned new_nodes;

/* Another client creates a node in a directory that was just listed. */
static void join_before(model_server *s, model_link *l, int32_t op,
                        const char *path)
{
  char name[64];

  (void)l;
  if (op != LK_OPCODE_DELETE || new_nodes == 0 || strcmp(path, "/t") != 0)
    return;
  snprintf(name, sizeof name, "/t/new-%u", new_nodes--);
  model_create(s, name);
}

START_TEST(nodes_created_during_a_delete_are_deleted)
{
  begin();
  create_tree();
  new_nodes = 4;
  server.before = join_before;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(new_nodes, 0);
  ck_assert_uint_eq(deleted, 17);
  finish();
}
END_TEST

START_TEST(delete_gives_up_when_children_are_created_all_the_time)
{
  begin();
  create_tree();
  new_nodes = 1000;
  server.before = join_before;
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NOT_EMPTY);
  ck_assert_ptr_nonnull(node("/t"));
  ck_assert_uint_ge(deleted, 12);
  finish();
}
END_TEST

static int32_t rival_op;
static unsigned rival_at;

/* Another client deletes the whole tree before a list or a delete is
 * executed. */
static void rival_before(model_server *s, model_link *l, int32_t op,
                         const char *path)
{
  static const char *const paths[] = {
      "/t/b/d/e", "/t/b/d", "/t/b/c", "/t/b", "/t/f/h/i/j",
      "/t/f/h/i", "/t/f/h", "/t/f/g", "/t/f", "/t/a",
      "/t/k",     "/t/l-0", "/t"};

  (void)l;
  (void)path;
  if (op != rival_op || rival_at == 0 || --rival_at > 0)
    return;
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    if (node(paths[i]) != NULL)
      model_delete(s, paths[i]);
  }
}

START_TEST(nodes_that_others_delete_meanwhile_are_no_error)
{
  for (unsigned at = 1; at < 20; at++) {
    begin();
    create_tree();
    rival_op = at % 2 == 0 ? LK_OPCODE_DELETE : LK_OPCODE_GET_CHILDREN2;
    rival_at = at / 2 + 1;
    server.before = rival_before;
    int err = delete_tree("/t");

    ck_assert(err == 0 || (at < 2 && err == LK_ERR_NO_NODE));
    ck_assert_ptr_null(node("/t"));
    ck_assert_uint_lt(deleted, 14);
    server.before = NULL;
    finish();
  }
}
END_TEST

START_TEST(first_refused_request_ends_the_delete_of_a_tree)
{
  begin();
  create_tree();
  model_deny(&server, "/t/b", LK_PERM_DELETE);
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NO_AUTH);
  ck_assert_ptr_nonnull(node("/t/b/c"));
  model_deny(&server, "/t/b", LK_PERM_READ);
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_NO_AUTH);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_can_be_cancelled)
{
  begin();
  create_tree();
  patience = 3;
  ck_assert_int_eq(delete_tree("/t"), LK_ERR_CANCELLED);
  ck_assert_uint_ge(deleted, 3);
  ck_assert_ptr_nonnull(node("/t"));
  patience = 0;
  ck_assert_int_eq(delete_tree("/tree"), LK_ERR_CANCELLED);
  finish();
}
END_TEST

static unsigned most_lists; /* largest number of lists in one write */
static unsigned writes;
static unsigned
    deletes_in[8]; /* number of deletes in each of the first writes */

static void on_write(model_server *s, model_link *l, const char *names)
{
  unsigned count = 0;

  (void)s;
  for (const char *at = names; (at = strstr(at, "getChildren2")) != NULL; at++)
    count++;
  most_lists = count > most_lists ? count : most_lists;
  for (const char *at = names; (at = strstr(at, "delete")) != NULL; at++)
    deletes_in[writes % 8]++;
  writes++;
  l->log[0] = '\0';
}

/* A directory with so many leaves, and subdirectories that are met first. */
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
  most_lists = 0;
  writes = 0;
  memset(deletes_in, 0, sizeof deletes_in);
  server.wrote = on_write;
}

START_TEST(sixteen_lists_are_requested_at_a_time_at_most)
{
  begin();
  create_wide_tree(0, 40);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted, 81);
  ck_assert_uint_eq(most_lists, 16);
  finish();
}
END_TEST

/* Reverses a list, so that the directories, which were created last, come
 * first. */
static bool list_backwards(model_link *l, lk_bytes frame)
{
  const sim_node *n = node("/w");
  struct lk_names_stat_reply a = {.stat = n->stat};
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);
  lk_bytes path = lk__reader_bytes(&in);

  if (op != LK_OPCODE_GET_CHILDREN2 || path.len != strlen("/w"))
    return model_serve(l, frame);
  lk_bytes *names = calloc((size_t)n->stat.num_children, sizeof *names);

  for (const sim_node *k = n->last_child; k != NULL; k = k->prev)
    names[a.names.count++] = lk_text(k->name);
  a.names.items = names;
  size_t mark = wire_begin(&l->out);

  wire_header(&l->out, xid, n->stat.pzxid, 0);
  wire_record(&l->out, &lk__names_stat_reply_record, &a);
  wire_end(&l->out, mark);
  free(names);
  return true;
}

/* 256 names have been requested when the first directory turns out not to be
 * empty; the other names are kept in memory. */
START_TEST(with_many_names_in_memory_one_list_is_requested_at_a_time)
{
  begin();
  server.serve = list_backwards;
  create_wide_tree(4096 + 256 - 3, 3);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted, 4356);
  ck_assert_uint_eq(most_lists, 1);
  finish();
}
END_TEST

START_TEST(with_one_name_less_in_memory_lists_are_requested_together)
{
  begin();
  server.serve = list_backwards;
  create_wide_tree(4095 + 256 - 3, 3);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted, 4355);
  ck_assert_uint_eq(most_lists, 3);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_respects_the_limit_of_outstanding_requests)
{
  begin();
  lk_client_free(link->client);
  outstanding_limit = 2;
  ck_assert(try_join());
  create_tree();
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted, 13);
  finish();
}
END_TEST

START_TEST(delete_of_a_tree_with_repeat_continues_after_connection_loss)
{
  for (unsigned at = 1; at < 60; at++) {
    begin();
    create_tree();
    link->requests = 0;
    link->cut_at = at / 2 + 1;
    link->cut_after = at % 2 == 0;
    ck_assert_int_eq(delete_tree_with("/t", true), 0);
    ck_assert_ptr_null(node("/t"));
    ck_assert_uint_le(deleted, 13);
    finish();
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
  ck_assert_int_eq(delete_tree_with("/t", true), 0);
  ck_assert_uint_eq(deleted, 0);
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

static unsigned refuse_from, refuse_until;

static void refuse_some(model_server *s, model_link *l, int32_t op,
                        const char *path)
{
  (void)s;
  (void)op;
  (void)path;
  if (l->requests < refuse_from || l->requests >= refuse_until)
    return;
  l->answer_at = l->requests;
  l->answer_err = LK_ERR_THROTTLED;
}

START_TEST(throttled_delete_of_a_tree_succeeds)
{
  for (unsigned at = 1; at < 12; at++) {
    begin();
    create_tree();
    link->requests = 0;
    link->throttle_at = at;
    ck_assert_int_eq(delete_tree("/t"), 0);
    ck_assert_uint_eq(deleted, 13);
    finish();
  }
}
END_TEST

/* The number of deletes and lists that the tree of create_tree() costs if
 * `refusals` requests in a row are refused, the first of them number `at`. */
static unsigned count_requests(unsigned at, unsigned refusals)
{
  unsigned all = 0;

  begin();
  create_tree();
  link->requests = 0;
  refuse_from = at;
  refuse_until = at + refusals;
  server.before = refuse_some;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(deleted, 13);
  all = model_count(link, "delete") + model_count(link, "getChildren2");
  server.before = NULL;
  finish();
  return all;
}

/* A pause changes the order of requests, so one directory more or less may be
 * deleted or listed again. */
START_TEST(each_throttled_request_costs_one_more_request)
{
  unsigned usual = count_requests(0, 0);

  ck_assert_uint_eq(usual, 32);
  for (unsigned at = 1; at <= usual; at++) {
    for (unsigned refusals = 1; refusals < 6; refusals++)
      ck_assert_uint_le(count_requests(at, refusals), usual + refusals + 4);
  }
}
END_TEST

START_TEST(pause_of_a_delete_ends_with_the_client)
{
  begin();
  model_create(&server, "/t");
  link->requests = 0;
  link->throttle_at = 1;
  ck_assert_int_eq(
      lk_delete_recursive(link->client, "/t", NULL, more, on_deleted, NULL), 0);
  ended = NOT_YET;
  model_turn(&server);
  ck_assert_int_eq(ended, NOT_YET);
  lk_client_free(link->client);
  ck_assert_int_eq(ended, LK_ERR_CLOSED);
  finish();
}
END_TEST

START_TEST(client_can_be_freed_during_a_create_or_delete)
{
  for (unsigned turns = 0; turns < 12; turns++) {
    begin();
    create_tree();
    ck_assert_int_eq(
        lk_delete_recursive(link->client, "/t", NULL, more, on_deleted, NULL),
        0);
    link->step = 40; /* bytes arrive in pieces of this size */
    ended = NOT_YET;
    calls = 0;
    for (unsigned i = 0; i < turns; i++) {
      link->allow = 60;
      model_turn(&server);
    }
    lk_client_free(link->client);
    ck_assert(ended == LK_ERR_CLOSED || ended == LK_ERR_NOT_SENT);
    ck_assert_uint_eq(calls, 1);
    finish();
  }
}
END_TEST

START_TEST(client_can_be_freed_in_the_last_callback)
{
  begin();
  create_tree();
  frees = true;
  ck_assert_int_eq(delete_tree("/t"), 0);
  ck_assert_uint_eq(mem.live, 0);
  ck_assert_ptr_null(link->client);
  ck_assert(try_join());
  ck_assert_int_eq(make("/x/y", 0, NULL), 0);
  ck_assert_ptr_null(link->client);
  finish();
}
END_TEST

static bool free_in_more(lk_client *c, size_t count, void *arg)
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
  ck_assert_int_eq(lk_delete_recursive(link->client, "/t", NULL, free_in_more,
                                       on_deleted, NULL),
                   0);
  ck_assert_int_eq(outcome(), LK_ERR_CLOSED);
  finish();
}
END_TEST

/* ---- until it is known ------------------------------------------------- */

/* What other clients change before the recovery reads. */
static void (*meanwhile)(model_server *s);

static void on_look(model_server *s, model_link *l, int32_t op,
                    const char *path)
{
  void (*what)(model_server * s) = meanwhile;

  (void)l;
  (void)path;
  if (op != LK_OPCODE_MULTI || what == NULL)
    return;
  meanwhile = NULL;
  what(s);
}

static void nothing(model_server *s)
{
  (void)s;
}

static void make_it(model_server *s)
{
  model_create(s, "/d/n");
}

static void delete_it(model_server *s)
{
  if (node("/d/n") != NULL)
    model_delete(s, "/d/n");
}

static void make_another(model_server *s)
{
  model_create(s, "/d/other");
}

static void replace_it(model_server *s)
{
  delete_it(s);
  make_it(s);
}

static void write_other(model_server *s)
{
  model_set(s, "/d/n", "other");
}

static void write_ours(model_server *s)
{
  model_set(s, "/d/n", "ours");
}

static void write_twice(model_server *s)
{
  write_ours(s);
  write_other(s);
}

static void hide_it(model_server *s)
{
  model_deny(s, "/d/n", LK_PERM_READ);
}

/* The connection breaks at the first request, before or after (`done`) it is
 * executed; then `others` change nodes. */
static void cut(bool done, void (*others)(model_server *s))
{
  link->requests = 0;
  link->cut_at = 1;
  link->cut_after = done;
  meanwhile = others;
  server.before = on_look;
}

static int create_it(int flags, bool sole)
{
  int err = lk_create_reliable(link->client, "/d/n", lk_text("ours"), NULL,
                               flags, sole, NULL, on_created, made);

  return err != 0 ? err : outcome();
}

typedef struct creates {
  int flags;
  bool sole;
  bool there; /* the node exists before the call */
  bool done;  /* the first request is executed, and its reply is lost */
  void (*others)(model_server *s);
  int err;
  bool left; /* the node exists in the end */
} creates;

static void check_create(const creates *x)
{
  begin_settled(x->there);
  cut(x->done, x->others);
  ck_assert_int_eq(create_it(x->flags, x->sole), x->err);
  ck_assert_ptr_null(meanwhile);
  ck_assert(x->left == (node("/d/n") != NULL));
  if (x->err == 0) {
    ck_assert_str_eq(made, "/d/n");
    ck_assert_int_eq(found.czxid, node("/d/n")->stat.czxid);
  }
  finish();
}

START_TEST(outcome_of_a_reliable_create_is_known)
{
  enum { P = LK_PERSISTENT, E = LK_EPHEMERAL };

  static const creates all[] = {
      {P, false, false, false, nothing, 0, true},
      {P, false, false, true, nothing, LK_ERR_IN_DOUBT, true},
      {P, false, true, false, nothing, LK_ERR_NODE_EXISTS, true},
      {P, false, true, true, nothing, LK_ERR_NODE_EXISTS, true},
      {P, false, false, false, make_it, LK_ERR_IN_DOUBT, true},
      {P, false, false, false, make_another, LK_ERR_IN_DOUBT, false},
      {P, false, false, true, delete_it, LK_ERR_IN_DOUBT, false},
      {P, false, true, false, hide_it, LK_ERR_IN_DOUBT, true},
      {P, true, false, false, nothing, 0, true},
      {P, true, false, true, nothing, 0, true},
      {P, true, true, false, nothing, LK_ERR_NODE_EXISTS, true},
      {P, true, false, false, make_another, 0, true},
      {E, false, false, false, nothing, 0, true},
      {E, false, false, true, nothing, 0, true},
      {E, false, true, false, nothing, LK_ERR_NODE_EXISTS, true},
      {E, false, false, false, make_it, LK_ERR_NODE_EXISTS, true},
      {E, false, false, false, make_another, 0, true},
      {E, true, false, true, nothing, 0, true},
      {LK_CONTAINER, false, false, true, nothing, LK_ERR_IN_DOUBT, true},
      {LK_CONTAINER, true, false, true, nothing, 0, true},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_create(&all[i]);
}
END_TEST

/* The first write of a client is lost and not executed. The client has received
 * replies before (`seen`), or none (`blind`). */
typedef struct firsts {
  int (*call)(bool sole);
  bool sole;
  const char *data; /* data of the node; NULL: it does not exist */
  int blind;        /* the result if the client had no reply before */
  int seen;         /* the result if it had one */
} firsts;

static int first_create(bool sole)
{
  return create_it(LK_PERSISTENT, sole);
}

static int first_set(bool sole)
{
  int err = lk_set_reliable(link->client, "/d/n", lk_text("ours"), 1, sole,
                            NULL, on_stat, NULL);

  return err != 0 ? err : outcome();
}

static int first_delete(bool sole)
{
  int err =
      lk_delete_reliable(link->client, "/d/n", -1, sole, NULL, on_done, NULL);

  return err != 0 ? err : outcome();
}

static void check_first(const firsts *x, bool blind)
{
  bool there = x->data != NULL;

  begin();
  model_create(&server, "/d");
  if (there) {
    model_create(&server, "/d/n");
    model_set(&server, "/d/n", x->data);
  }
  link->requests = 0;
  link->cut_at = 2;
  link->cut_softly = !blind;
  int err = x->call(x->sole);

  ck_assert_int_eq(err, blind ? x->blind : x->seen);
  if (err == 0)
    there = x->call != first_delete;
  ck_assert(there == (node("/d/n") != NULL));
  if (there && x->call == first_set)
    ck_assert_int_eq(node("/d/n")->stat.version, err == 0 ? 2 : 1);
  finish();
}

START_TEST(client_without_a_zxid_does_not_claim_a_node)
{
  enum { LOST = LK_ERR_IN_DOUBT, THERE = LK_ERR_NODE_EXISTS };

  static const firsts all[] = {
      {first_create, false, NULL, LOST, 0},
      {first_create, false, "ours", LOST, THERE},
      {first_create, true, NULL, 0, 0},
      {first_create, true, "ours", LOST, THERE},
      {first_create, true, "other", LOST, THERE},
      {first_set, false, "other", LOST, 0},
      {first_set, true, "other", 0, 0},
      {first_set, true, "ours", 0, 0},
      {first_delete, false, "", LOST, 0},
      {first_delete, true, "", 0, 0},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    check_first(&all[i], true);
    check_first(&all[i], false);
  }
}
END_TEST

/* The node was created before the call, but after the last reply that the
 * client received. */
START_TEST(node_created_before_the_call_is_not_taken_for_ours)
{
  begin_settled(false);
  model_create(&server, "/d/n");
  cut(false, nothing);
  ck_assert_int_eq(create_it(LK_PERSISTENT, true), LK_ERR_NODE_EXISTS);
  finish();
  begin_settled(false);
  model_create(&server, "/d/n");
  model_set(&server, "/d/n", "other");
  cut(false, nothing);
  ck_assert_int_eq(first_set(true), 0);
  ck_assert_int_eq(node("/d/n")->stat.version, 2);
  cut(false, nothing);
  ck_assert_int_eq(first_delete(true), 0);
  ck_assert_ptr_null(node("/d/n"));
  finish();
}
END_TEST

START_TEST(recovery_read_and_its_transaction_are_one_write)
{
  begin_settled(false);
  cut(true, NULL);
  ck_assert_int_eq(create_it(0, true), 0);
  ck_assert(model_check_log(link, "create2 | multi getData") ||
            model_check_log(link, "create2 multi getData"));
  finish();
}
END_TEST

START_TEST(sequential_create_stays_in_doubt)
{
  begin_settled(false);
  cut(true, NULL);
  ck_assert_int_eq(create_it(LK_SEQUENTIAL, true), LK_ERR_IN_DOUBT);
  cut(false, NULL);
  ck_assert_int_eq(create_it(LK_SEQUENTIAL | LK_EPHEMERAL, false),
                   LK_ERR_IN_DOUBT);
  finish();
}
END_TEST

static void expire(model_server *s)
{
  model_expire(s, link->session);
}

START_TEST(reliable_create_of_an_ephemeral_node_ends_with_its_session)
{
  begin_settled(false);
  cut(true, expire);
  ck_assert_int_eq(create_it(LK_EPHEMERAL, false), LK_ERR_SESSION_EXPIRED);
  finish();
  begin_settled(false);
  cut(true, expire);
  ck_assert_int_eq(create_it(LK_PERSISTENT, true), 0);
  finish();
}
END_TEST

typedef struct sets {
  int32_t version;
  bool sole;
  bool done;
  void (*others)(model_server *s);
  int err;
  int32_t after; /* the version of the node in the end */
} sets;

static void check_set(const sets *x)
{
  begin_settled(true);
  cut(x->done, x->others);
  ck_assert_int_eq(lk_set_reliable(link->client, "/d/n", lk_text("ours"),
                                   x->version, x->sole, NULL, on_stat, NULL),
                   0);
  ck_assert_int_eq(outcome(), x->err);
  ck_assert_ptr_null(meanwhile);
  if (node("/d/n") != NULL)
    ck_assert_int_eq(node("/d/n")->stat.version, x->after);
  if (x->err == 0)
    ck_assert_int_eq(found.version, x->after);
  finish();
}

START_TEST(outcome_of_a_reliable_set_is_known)
{
  static const sets all[] = {
      {0, false, false, nothing, 0, 1},
      {0, false, true, nothing, LK_ERR_IN_DOUBT, 1},
      {0, false, false, write_ours, LK_ERR_IN_DOUBT, 1},
      {0, false, false, write_other, LK_ERR_BAD_VERSION, 1},
      {0, false, true, write_other, LK_ERR_IN_DOUBT, 2},
      {0, false, false, write_twice, LK_ERR_IN_DOUBT, 2},
      {0, false, false, delete_it, LK_ERR_IN_DOUBT, 0},
      {0, false, false, replace_it, LK_ERR_IN_DOUBT, 0},
      {0, false, true, hide_it, LK_ERR_IN_DOUBT, 1},
      {0, true, true, nothing, 0, 1},
      {0, true, false, nothing, 0, 1},
      {-1, false, false, nothing, 0, 1},
      {-1, false, true, nothing, LK_ERR_IN_DOUBT, 1},
      {-1, false, false, write_other, LK_ERR_IN_DOUBT, 1},
      {-1, true, true, nothing, 0, 1},
      {-1, true, false, delete_it, LK_ERR_NO_NODE, 0},
      {1, false, false, nothing, LK_ERR_BAD_VERSION, 0},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_set(&all[i]);
}
END_TEST

typedef struct deletes {
  int32_t version;
  bool sole;
  bool done;
  void (*others)(model_server *s);
  int err;
  bool left;
} deletes;

static void check_delete(const deletes *x)
{
  begin_settled(true);
  cut(x->done, x->others);
  ck_assert_int_eq(lk_delete_reliable(link->client, "/d/n", x->version, x->sole,
                                      NULL, on_done, NULL),
                   0);
  ck_assert_int_eq(outcome(), x->err);
  ck_assert_ptr_null(meanwhile);
  ck_assert(x->left == (node("/d/n") != NULL));
  finish();
}

START_TEST(outcome_of_a_reliable_delete_is_known)
{
  static const deletes all[] = {
      {-1, false, false, nothing, 0, false},
      {-1, false, true, nothing, LK_ERR_IN_DOUBT, false},
      {-1, false, false, delete_it, LK_ERR_IN_DOUBT, false},
      {-1, false, false, replace_it, LK_ERR_IN_DOUBT, true},
      {-1, false, true, make_it, LK_ERR_IN_DOUBT, true},
      {-1, true, true, nothing, 0, false},
      {-1, true, false, nothing, 0, false},
      {0, false, false, write_other, LK_ERR_BAD_VERSION, true},
      {0, true, true, nothing, 0, false},
      {7, false, false, nothing, LK_ERR_BAD_VERSION, true},
  };

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    check_delete(&all[i]);
}
END_TEST

/* The deletes of the remaining leaves are sent with the list of the
 * directory. */
START_TEST(directory_among_leaves_does_not_delay_them)
{
  begin();
  create_wide_tree(300, 1);
  ck_assert_int_eq(delete_tree("/w"), 0);
  ck_assert_uint_eq(deleted, 303);
  ck_assert_uint_eq(writes, 5);
  ck_assert_uint_eq(deletes_in[3], 45);
  finish();
}
END_TEST

START_TEST(node_created_by_the_last_zxid_seen_is_deleted)
{
  begin();
  model_create(&server, "/d");
  model_create(&server, "/d/n");
  ck_assert_int_eq(lk_sync(link->client, "/d", NULL, on_done, NULL), 0);
  ck_assert_int_eq(outcome(), 0);
  cut(false, nothing);
  ck_assert_int_eq(
      lk_delete_reliable(link->client, "/d/n", -1, false, NULL, on_done, NULL),
      0);
  ck_assert_int_eq(outcome(), 0);
  ck_assert_ptr_null(node("/d/n"));
  finish();
}
END_TEST

static const int32_t give_up_ms = T / 4;

/* Sends a write `after_ms` after a request that was answered. All servers
 * vanish before the reply. The client gives up its session, and then the
 * servers are back. */
static void give_session_up(int64_t timeout_ms, int64_t after_ms)
{
  lk_client_config config = {.size = sizeof config,
                             .session_timeout_ms = T,
                             .give_up_ms = give_up_ms,
                             .mem = &mem.mem};
  lk_call call = {.size = sizeof call, .timeout_ms = timeout_ms};

  begin_settled(false);
  lk_client_free(link->client);
  link = model_client(&server, &config);
  model_turn(&server);
  ck_assert_int_eq(lk_delete(link->client, "/none", -1, NULL, on_done, NULL),
                   0);
  ck_assert_int_eq(outcome(), LK_ERR_NO_NODE);
  link->log[0] = '\0';
  link->frozen = true;
  ended = NOT_YET;
  calls = 0;
  model_run(&server, after_ms);
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text("x"), NULL,
                                      0, true, &call, on_created, made),
                   0);
  model_turn(&server);
  server.down = true;
  model_drop(link);
  link->frozen = false;
  model_run(&server, give_up_ms + 1 - after_ms);
  server.down = false;
}

/* The servers keep the abandoned session for a timeout and a tick, and may
 * execute the write until then. */
START_TEST(reliable_write_waits_for_the_end_of_an_abandoned_session)
{
  give_session_up(0, 0);
  int64_t left = lk_client_abandoned_session_end(link->client) - server.now;

  ck_assert_int_eq(left, T + T / 4 - 1);
  model_run(&server, left - 1);
  ck_assert_int_eq(lk_client_state(link->client), LK_STATE_CONNECTED);
  ck_assert(model_check_log(link, "create2"));
  ck_assert_int_eq(ended, NOT_YET);
  model_create(&server, "/d/n"); /* an old server executes the write late */
  model_set(&server, "/d/n", "x");
  model_run(&server, 1);
  ck_assert(model_check_log(link, "multi getData"));
  ck_assert_int_eq(ended, 0);
  ck_assert_uint_eq(calls, 1);
  finish();
}
END_TEST

/* The server counts from the last request that it received, with or without a
   reply. */
START_TEST(abandoned_session_ends_a_timeout_after_the_last_bytes_sent)
{
  give_session_up(0, T / 8);
  int64_t left = lk_client_abandoned_session_end(link->client) - server.now;

  ck_assert_int_eq(left, T + T / 4 + T / 8 - 1);
  model_run(&server, left - 1);
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 1);
  ck_assert_int_eq(ended, 0);
  finish();
}
END_TEST

START_TEST(the_wait_for_a_session_ends_at_the_deadline)
{
  give_session_up(T, 0);
  model_run(&server, T - T / 4 - 2);
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 2);
  ck_assert_int_eq(ended, LK_ERR_DEADLINE);
  ck_assert(model_check_log(link, "create2"));
  finish();
}
END_TEST

/* A write that was made without a connection was certainly not sent. Yet its
 * result is only that its session ended. */
START_TEST(unsent_write_is_sent_in_the_next_session)
{
  for (int flags = 0; flags <= LK_EPHEMERAL; flags += LK_EPHEMERAL) {
    begin_settled(false);
    server.down = true;
    model_drop(link);
    model_turn(&server);
    ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text("x"),
                                        NULL, flags, false, NULL, on_created,
                                        made),
                     0);
    ended = NOT_YET;
    calls = 0;
    model_expire(&server, link->last_session);
    server.down = false;
    model_run(&server, T / 2);
    ck_assert_int_eq(ended, flags == 0 ? 0 : LK_ERR_SESSION_EXPIRED);
    ck_assert_int_eq(lk_client_abandoned_session_end(link->client), INT64_MIN);
    ck_assert_uint_eq(calls, 1);
    ck_assert(model_check_log(
        link, flags == 0 ? "multi exists getData | create2" : ""));
    ck_assert((node("/d/n") != NULL) == (flags == 0));
    finish();
  }
}
END_TEST

START_TEST(refused_credentials_end_a_pause_at_once)
{
  for (int deep = 0; deep < 2; deep++) {
    begin_settled(true);
    link->requests = 0;
    link->throttle_at = 1;
    link->answer_at = 2;
    link->answer_err = LK_ERR_AUTH_REQUIRED;
    ck_assert_int_eq(deep ? lk_delete_recursive(link->client, "/d/n", NULL,
                                                more, on_deleted, NULL)
                          : lk_delete_reliable(link->client, "/d/n", -1, true,
                                               NULL, on_done, NULL),
                     0);
    ended = NOT_YET;
    calls = 0;
    model_turn(&server);
    ck_assert_int_eq(ended, NOT_YET);
    ck_assert_int_eq(lk_exists(link->client, "/d", NULL, NULL, NULL), 0);
    model_turn(&server);
    ck_assert_int_eq(lk_client_state(link->client), LK_STATE_AUTH_FAILED);
    ck_assert_int_eq(ended, LK_ERR_AUTH_FAILED);
    ck_assert_uint_eq(calls, 1);
    finish();
  }
}
END_TEST

START_TEST(unsent_write_is_sent_after_the_reconnect)
{
  begin_settled(false);
  server.down = true;
  model_drop(link);
  model_turn(&server);
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text(""), NULL,
                                      0, false, NULL, on_created, made),
                   0);
  ended = NOT_YET;
  model_run(&server, T / 4);
  ck_assert_int_eq(ended, NOT_YET);
  server.down = false;
  ck_assert_int_eq(outcome(), 0);
  finish();
}
END_TEST

START_TEST(recovery_below_a_chroot_reads_the_same_nodes)
{
  static const char *const roots[] = {"x/d", "x/none"};

  for (size_t i = 0; i < 2; i++) {
    begin_settled(false);
    move_to(roots[i]);
    ck_assert_int_eq(lk_delete(link->client, "/other", -1, NULL, on_done, NULL),
                     0);
    ck_assert_int_eq(outcome(), LK_ERR_NO_NODE);
    cut(false, nothing);
    ck_assert_int_eq(lk_create_reliable(link->client, "/n", lk_text(""), NULL,
                                        0, i > 0, NULL, on_created, made),
                     0);
    ck_assert_int_eq(outcome(), i == 0 ? 0 : LK_ERR_NO_NODE);
    ck_assert_str_eq(made, i == 0 ? "/n" : "");
    ck_assert(i > 0 || node("/d/n") != NULL);
    finish();
  }
}
END_TEST

START_TEST(interrupted_recovery_of_a_write_starts_again)
{
  for (unsigned at = 1; at < 7; at++) {
    begin_settled(true);
    link->requests = 0;
    link->cut_at = 1;
    link->cut_after = true;
    ck_assert_int_eq(
        lk_delete_reliable(link->client, "/d/n", -1, true, NULL, on_done, NULL),
        0);
    ended = NOT_YET;
    calls = 0;
    model_turn(&server);
    while (link->requests < 1)
      model_run(&server, 1);
    link->requests = 0;
    link->cut_at = at / 2;
    link->cut_after = at % 2 == 0;
    ck_assert_int_eq(outcome(), 0);
    finish();
  }
}
END_TEST

START_TEST(throttled_recovery_of_a_write_is_repeated)
{
  for (unsigned at = 1; at < 5; at++) {
    begin_settled(true);
    link->requests = 0;
    link->throttle_at = at;
    link->cut_at = at == 1 ? 2 : 1;
    link->cut_after = true;
    ck_assert_int_eq(lk_set_reliable(link->client, "/d/n", lk_text("x"), 0,
                                     true, NULL, on_stat, NULL),
                     0);
    ck_assert_int_eq(outcome(), 0);
    ck_assert_int_eq(found.version, 1);
    /* A read without a transaction before it proves nothing. */
    if (at == 2 || at == 3)
      ck_assert_uint_eq(model_count(link, "multi"), 2);
    finish();
  }
}
END_TEST

START_TEST(deadline_ends_a_write_in_doubt)
{
  lk_call call = {.size = sizeof call, .timeout_ms = 500};

  begin_settled(false);
  link->requests = 0;
  link->cut_at = 1;
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text(""), NULL,
                                      0, true, &call, on_created, made),
                   0);
  ended = NOT_YET;
  model_turn(&server);
  server.down = true;
  model_drop(link);
  model_run(&server, 500); /* timeouts are rounded up */
  ck_assert_int_eq(ended, NOT_YET);
  model_run(&server, 1);
  ck_assert_int_eq(ended, LK_ERR_DEADLINE);
  finish();
}
END_TEST

START_TEST(reliable_write_ends_with_its_client)
{
  begin_settled(false);
  server.down = true;
  model_drop(link);
  model_turn(&server);
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text(""), NULL,
                                      0, false, NULL, on_created, made),
                   0);
  ended = NOT_YET;
  lk_client_free(link->client);
  ck_assert_int_eq(ended, LK_ERR_CLOSED);
  finish();
  begin_settled(false);
  link->requests = 0;
  link->throttle_at = 1;
  ck_assert_int_eq(lk_create_reliable(link->client, "/d/n", lk_text(""), NULL,
                                      0, false, NULL, on_created, made),
                   0);
  ended = NOT_YET;
  model_turn(&server);
  ck_assert_int_eq(ended, NOT_YET);
  lk_client_free(link->client);
  ck_assert_int_eq(ended, LK_ERR_CLOSED);
  finish();
}
END_TEST

START_TEST(client_can_be_freed_in_the_callback_of_a_reliable_write)
{
  begin_settled(false);
  frees = true;
  cut(true, NULL);
  ck_assert_int_eq(create_it(LK_EPHEMERAL, false), 0);
  ck_assert_ptr_null(link->client);
  finish();
}
END_TEST

/* ---- memory ------------------------------------------------------------ */

/* Starts a call of each kind; all can be outstanding together. */
static int start_all(unsigned *wanted)
{
  lk_client *c = link->client;
  int err = lk_create_with_parents(c, "/a/b/c", lk_text("x"), &lk_acl_read, 0,
                                   &containers, NULL, on_created, made);

  *wanted += err == 0;
  if (err == 0) {
    err = lk_delete_recursive(c, "/t", NULL, more, on_deleted, NULL);
    *wanted += err == 0;
  }
  if (err == 0) {
    err = lk_create_reliable(c, "/d/n", lk_text("x"), &lk_acl_creator, 0, true,
                             NULL, on_created, made);
    *wanted += err == 0;
  }
  return err;
}

/* The n-th allocation fails. true: there were that many. */
static bool run_out(size_t n, bool for_good)
{
  unsigned wanted = 0;

  frees = false;
  patience = SIZE_MAX;
  outstanding_limit = 0;
  model_init(&server);
  model_create(&server, "/d");
  create_tree();
  failing_mem_init(&mem);
  mem.fail_at = n;
  mem.for_good = for_good;
  if (try_join()) {
    model_turn(&server);
    link->requests = 0;
    link->cut_at = 9;
    calls = 0;
    int err = start_all(&wanted);

    ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
    model_run(&server, T / 2);
    lk_client_free(link->client);
    ck_assert_uint_eq(calls, wanted);
  }
  bool failed = failing_mem_failed(&mem);

  ck_assert_uint_eq(mem.live, 0);
  model_done(&server);
  return failed;
}

START_TEST(every_allocation_can_fail)
{
  for (size_t n = 1; run_out(n, false);)
    n++;
  for (size_t n = 1; run_out(n, true);)
    n++;
}
END_TEST

SUITE("nodes", create_below_existing_parents_is_one_request,
      missing_parents_are_created_in_one_write_with_the_node,
      parents_can_be_containers_with_their_own_acl,
      containers_are_refused_by_an_old_server,
      container_parents_that_a_server_deletes_are_created_again,
      deleted_container_parents_are_created_again_ten_times_at_most,
      missing_permission_for_a_parent_is_the_result,
      create_below_an_ephemeral_node_fails_with_its_error,
      missing_root_ends_a_create_with_parents, parents_end_at_the_chroot,
      a_deadline_covers_all_of_a_create,
      create_may_pass_its_deadline_before_its_parents_exist,
      invalid_arguments_are_refused, delete_of_a_leaf_is_one_request,
      delete_of_a_tree_deletes_nothing_else,
      delete_of_a_directory_of_leaves_is_three_writes,
      chain_of_directories_is_deleted_in_one_write,
      a_deadline_covers_all_of_a_tree,
      zookeeper_node_is_reserved_at_the_root_of_the_servers_only,
      nodes_created_during_a_delete_are_deleted,
      delete_gives_up_when_children_are_created_all_the_time,
      nodes_that_others_delete_meanwhile_are_no_error,
      first_refused_request_ends_the_delete_of_a_tree,
      delete_of_a_tree_can_be_cancelled,
      sixteen_lists_are_requested_at_a_time_at_most,
      with_many_names_in_memory_one_list_is_requested_at_a_time,
      with_one_name_less_in_memory_lists_are_requested_together,
      directory_among_leaves_does_not_delay_them,
      node_created_by_the_last_zxid_seen_is_deleted,
      delete_of_a_tree_respects_the_limit_of_outstanding_requests,
      delete_of_a_tree_with_repeat_continues_after_connection_loss,
      delete_with_a_lost_reply_succeeds_if_the_node_is_gone,
      delete_of_a_tree_without_repeat_ends_with_the_connection,
      throttled_delete_of_a_tree_succeeds,
      each_throttled_request_costs_one_more_request,
      pause_of_a_delete_ends_with_the_client,
      client_can_be_freed_during_a_create_or_delete,
      client_can_be_freed_in_the_last_callback,
      client_can_be_freed_in_the_progress_callback,
      outcome_of_a_reliable_create_is_known,
      client_without_a_zxid_does_not_claim_a_node,
      node_created_before_the_call_is_not_taken_for_ours,
      recovery_read_and_its_transaction_are_one_write,
      sequential_create_stays_in_doubt,
      reliable_create_of_an_ephemeral_node_ends_with_its_session,
      outcome_of_a_reliable_set_is_known, outcome_of_a_reliable_delete_is_known,
      unsent_write_is_sent_after_the_reconnect,
      reliable_write_waits_for_the_end_of_an_abandoned_session,
      abandoned_session_ends_a_timeout_after_the_last_bytes_sent,
      the_wait_for_a_session_ends_at_the_deadline,
      unsent_write_is_sent_in_the_next_session,
      refused_credentials_end_a_pause_at_once,
      recovery_below_a_chroot_reads_the_same_nodes,
      interrupted_recovery_of_a_write_starts_again,
      throttled_recovery_of_a_write_is_repeated, deadline_ends_a_write_in_doubt,
      reliable_write_ends_with_its_client,
      client_can_be_freed_in_the_callback_of_a_reliable_write,
      every_allocation_can_fail)
