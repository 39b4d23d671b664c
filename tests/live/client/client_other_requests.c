/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Requests beyond the basic ones, against a real server: access lists,
 * multiRead, counts, ephemeral nodes, identities, TTLs, configuration. */

#include "live/client/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TEXTS = 8 };

/* The results of the last request for which `last_reply` has no members. */
static struct {
  size_t count;               /* of the list in the reply */
  int32_t number;             /* the number in the reply */
  char texts[MAX_TEXTS][256]; /* each element of the list */
  int errs[MAX_TEXTS];        /* the error of each read of a multiRead */
} more;

static void note_text(size_t i, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note_text(size_t i, const char *format, ...)
{
  va_list args;

  if (i >= MAX_TEXTS)
    return;
  va_start(args, format);
  vsnprintf(more.texts[i], sizeof more.texts[i], format, args);
  va_end(args);
}

static completion *reset_results(void)
{
  memset(&last_reply, 0, sizeof last_reply);
  memset(&more, 0, sizeof more);
  return &last_reply;
}

/* `call_err` is what the call has returned that queues the request. */
static int wait_for_result(int call_err)
{
  if (call_err != 0)
    return call_err;
  wait_until(&last_reply.done);
  return last_reply.err;
}

static void on_done_with_stat(lk_client *c, int err, const lk_stat *stat,
                              void *arg)
{
  on_done(c, err, arg);
  if (stat != NULL)
    ((completion *)arg)->stat = *stat;
}

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  char text[256];

  if (acl != NULL) {
    ck_assert_uint_lt(lk_acl_print(text, sizeof text, acl), sizeof text);
    note_text(0, "%s", text);
    more.count = acl->count;
  }
  on_done_with_stat(c, err, stat, arg);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  more.count = count;
  for (size_t i = 0; i < count; i++)
    note_text(i, "%.*s", (int)paths[i].len, (const char *)paths[i].at);
  on_done(c, err, arg);
}

static void on_count(lk_client *c, int err, int32_t count, void *arg)
{
  more.number = count;
  on_done(c, err, arg);
}

static void on_identities(lk_client *c, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  more.count = count;
  for (size_t i = 0; i < count; i++)
    note_text(i, "%.*s:%.*s", (int)ids[i].scheme.len,
              (const char *)ids[i].scheme.at, (int)ids[i].user.len,
              (const char *)ids[i].user.at);
  on_done(c, err, arg);
}

/* Note "COUNT: NAME", where NAME is the first of the children. */
static void note_first_name(size_t i, const lk_read_result *r)
{
  if (r->count == 0)
    note_text(i, "0: ");
  else
    note_text(i, "%zu: %.*s", r->count, (int)r->names->len,
              (const char *)r->names->at);
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  more.count = count;
  for (size_t i = 0; i < count; i++) {
    const lk_read_result *r = &results[i];

    more.errs[i] = r->err;
    if (r->type == LK_READ_GET)
      note_text(i, "%.*s at %d", (int)r->data.len, (const char *)r->data.at,
                (int)r->stat->version);
    if (r->type == LK_READ_GET_CHILDREN)
      note_first_name(i, r);
  }
  on_done(c, err, arg);
}

static bool is_in_list(const char *text)
{
  for (size_t i = 0; i < more.count && i < MAX_TEXTS; i++) {
    if (strcmp(more.texts[i], text) == 0)
      return true;
  }
  return false;
}

/* ---- access lists ------------------------------------------------------- */

static int get_acl(lk_client *c, const char *path)
{
  return wait_for_result(lk_get_acl(c, path, NULL, on_acl, reset_results()));
}

static int set_acl(lk_client *c, const char *path, const char *text,
                   int32_t version)
{
  lk_acls *acl;

  ck_assert_int_eq(lk_acl_parse(&acl, text, NULL, NULL), 0);
  int err = wait_for_result(
      lk_set_acl(c, path, acl, version, NULL, on_stat, reset_results()));

  lk_acl_free(acl, NULL);
  return err;
}

START_TEST(access_list_is_read_and_replaced)
{
  char id_of_bob[64], text[256];

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/a", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  ck_assert_str_eq(more.texts[0], "world:anyone:cdrwa");
  ck_assert_int_eq(last_reply.stat.aversion, 0);
  ck_assert_int_eq(lk_acl_digest(id_of_bob, sizeof id_of_bob, "bob:secret"), 0);
  snprintf(text, sizeof text, "world:anyone:r,digest:%s:cdrwa", id_of_bob);
  ck_assert_int_eq(set_acl(here, "/a", text, 0), 0);
  ck_assert_int_eq(last_reply.stat.aversion, 1);
  ck_assert_int_eq(last_reply.evidence, LK_EVIDENCE_COMMIT);
  ck_assert_int_eq(get(there, absolute("/a")), 0);
  ck_assert_int_eq(set(there, absolute("/a"), lk_text("x"), -1),
                   LK_ERR_NO_AUTH);
  /* The server hides digests from clients without the ADMIN permission. */
  ck_assert_int_eq(get_acl(there, absolute("/a")), 0);
  ck_assert_str_eq(more.texts[0], "world:anyone:r,digest:bob:x:cdrwa");
  ck_assert_int_eq(set_acl(there, absolute("/a"), "world:anyone:cdrwa", -1),
                   LK_ERR_NO_AUTH);
  /* The server computed the same digest as lk_acl_digest(). */
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  ck_assert_str_eq(more.texts[0], text);
  ck_assert_int_eq(set_acl(here, "/a", "world:anyone:cdrwa", 0),
                   LK_ERR_BAD_VERSION);
  ck_assert_int_eq(set_acl(here, "/a", "nosuch:x:r", -1), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(here, "/a", "auth::ra", 1), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  snprintf(text, sizeof text, "digest:%s:ra", id_of_bob);
  ck_assert_str_eq(more.texts[0], text);
  ck_assert_int_eq(get(there, absolute("/a")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(get_acl(there, absolute("/a")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(get_acl(here, "/none"), LK_ERR_NO_NODE);
  ck_assert_int_eq(set_acl(here, "/none", "world:anyone:r", -1),
                   LK_ERR_NO_NODE);
}
END_TEST

/* ---- reads -------------------------------------------------------------- */

static int multi_read(const lk_read *reads, size_t count)
{
  return wait_for_result(
      lk_multi_read(here, reads, count, NULL, on_reads, reset_results()));
}

START_TEST(multi_read_reports_each_read)
{
  lk_read reads[] = {lk_read_get("/r"), lk_read_get_children("/r"),
                     lk_read_get("/no"), lk_read_get_children("/"),
                     lk_read_get_children("/no")};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/r", "one", LK_PERSISTENT), 0);
  ck_assert_int_eq(set(here, "/r", lk_text("two"), 0), 0);
  ck_assert_int_eq(create(here, "/r/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(multi_read(reads, 5), 0);
  ck_assert_uint_eq(more.count, 5);
  ck_assert_str_eq(more.texts[0], "two at 1");
  ck_assert_str_eq(more.texts[1], "1: x");
  ck_assert_int_eq(more.errs[2], LK_ERR_NO_NODE);
  ck_assert_int_eq(more.errs[3], 0);
  ck_assert_int_eq(more.errs[4], LK_ERR_NO_NODE);
  ck_assert_int_eq(multi_read(NULL, 0), 0);
  ck_assert_uint_eq(more.count, 0);
}
END_TEST

static int count_descendants(const char *path)
{
  return wait_for_result(
      lk_count_descendants(here, path, NULL, on_count, reset_results()));
}

START_TEST(descendants_are_counted)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/n", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/n/1", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/n/1/2", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/no", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(count_descendants("/n"), 0);
  ck_assert_int_eq(more.number, 2);
  ck_assert_int_eq(count_descendants("/"), 0);
  /* Without a chroot, `/` also has the nodes of other tests. */
  ck_assert(with_chroot(_i) ? more.number == 4 : more.number > 4);
  ck_assert_int_eq(count_descendants("/none"), LK_ERR_NO_NODE);
}
END_TEST

/* List the nodes whose paths begin with `prefix`; NULL: all. */
static int list_ephemerals(const char *prefix)
{
  return wait_for_result(
      lk_ephemerals(here, prefix, NULL, on_paths, reset_results()));
}

START_TEST(ephemeral_nodes_of_the_session_are_listed)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create(here, "/e", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(create(here, "/e/1", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(here, "/eel", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(there, absolute("/e/2"), "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(list_ephemerals(NULL), 0);
  ck_assert_uint_eq(more.count, 2);
  ck_assert(is_in_list("/e/1") && is_in_list("/eel"));
  ck_assert_int_eq(list_ephemerals("/e/"), 0);
  ck_assert_uint_eq(more.count, 1);
  ck_assert(is_in_list("/e/1"));
  ck_assert_int_eq(list_ephemerals("/e"), 0);
  ck_assert_uint_eq(more.count, 2);
  ck_assert_int_eq(list_ephemerals("/x"), 0);
  ck_assert_uint_eq(more.count, 0);
}
END_TEST

static int list_identities(void)
{
  return wait_for_result(
      lk_who_am_i(here, NULL, on_identities, reset_results()));
}

START_TEST(who_am_i_lists_identities)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(list_identities(), 0);
  ck_assert_uint_eq(more.count, 1);
  ck_assert_int_eq(strncmp(more.texts[0], "ip:127.", strlen("ip:127.")), 0);
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(list_identities(), 0);
  ck_assert_uint_eq(more.count, 2);
  ck_assert(is_in_list("digest:bob"));
}
END_TEST

/* ---- nodes that the server deletes --------------------------------------- */

static int create_ttl(const char *path, int flags, int64_t ttl_ms)
{
  return wait_for_result(lk_create_ttl(here, path, lk_text("x"), NULL, flags,
                                       ttl_ms, NULL, on_created,
                                       reset_results()));
}

START_TEST(node_with_a_ttl_is_deleted_when_the_ttl_has_passed)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(create_ttl("/t", LK_PERSISTENT, 100), 0);
  ck_assert_str_eq(last_reply.path, "/t");
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

START_TEST(multi_creates_containers_and_nodes_with_a_ttl)
{
  lk_op ops[] = {
      lk_op_create("/k", lk_text(""), NULL, LK_PERSISTENT),
      lk_op_create2("/k/2", lk_text("two"), NULL, LK_PERSISTENT),
      lk_op_create("/k/c", lk_text(""), NULL, LK_CONTAINER),
      lk_op_create_ttl("/k/t", lk_text(""), NULL, LK_PERSISTENT, 100),
      lk_op_create_ttl("/k/t-", lk_text(""), NULL, LK_SEQUENTIAL, 100),
      lk_op_delete("/k/2", 0),
  };

  connect_here(with_chroot(_i));
  ck_assert_int_eq(multi(here, ops, 6), 0);
  ck_assert_str_eq(last_reply.paths[1], "/k/2");
  ck_assert_str_eq(last_reply.paths[2], "/k/c");
  ck_assert_str_eq(last_reply.paths[3], "/k/t");
  ck_assert_str_eq(last_reply.paths[4], "/k/t-0000000003");
  /* createContainer and createTTL reply with a Stat, as create2 does. */
  for (size_t i = 2; i < 5; i++) {
    ck_assert_int_eq(last_reply.results[i].type, LK_OP_CREATE2);
    ck_assert_int_eq(last_reply.versions[i], 0);
  }
  /* The server deletes a container after its last child. */
  ck_assert_int_eq(create(here, "/k/c/x", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(delete_node(here, "/k/c/x", -1), 0);
  while (children(here, "/k") == 0 && last_reply.count > 0)
    usleep(20 * 1000);
  ck_assert_int_eq(last_reply.err, 0); /* "/k" still exists, without children */
  ops[3].ttl_ms = -1;
  ck_assert_int_eq(multi(here, ops, 6), LK_ERR_BAD_ARGUMENT);
}
END_TEST

/* ---- configuration ------------------------------------------------------ */

START_TEST(standalone_server_has_no_configuration)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = "1", .version = -1};

  connect_here(with_chroot(_i));
  ck_assert_int_eq(
      wait_for_result(lk_get_config(here, NULL, on_get, reset_results())), 0);
  ck_assert_uint_eq(last_reply.len, 0);
  ck_assert_int_eq(wait_for_result(lk_reconfig(here, &change, NULL, on_get,
                                               reset_results())),
                   LK_ERR_RECONFIG_DISABLED);
  /* The server refuses the request and keeps the connection. */
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

TCase *request_tests(void)
{
  const TTest *const tests[] = {
      access_list_is_read_and_replaced,
      multi_read_reports_each_read,
      descendants_are_counted,
      ephemeral_nodes_of_the_session_are_listed,
      who_am_i_lists_identities,
      node_with_a_ttl_is_deleted_when_the_ttl_has_passed,
      multi_creates_containers_and_nodes_with_a_ttl,
      standalone_server_has_no_configuration,
  };
  TCase *t = tcase_create("other");

  add_tests_without_and_with_chroot(t, tests, sizeof tests / sizeof tests[0]);
  return t;
}
