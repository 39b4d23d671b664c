/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Requests beyond the basic ones, against a real server: access lists,
 * multiRead, counts, ephemeral nodes, identities, TTLs, configuration. */

#include "live/client/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The results of the last request that do not fit into `last`. */
static struct {
  size_t count;
  int32_t number;
  char text[8][256];
  int errs[8];
} got;

static void note_text(size_t i, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note_text(size_t i, const char *format, ...)
{
  va_list args;

  if (i >= 8)
    return;
  va_start(args, format);
  vsnprintf(got.text[i], sizeof got.text[i], format, args);
  va_end(args);
}

static completion *reset_results(void)
{
  memset(&last, 0, sizeof last);
  memset(&got, 0, sizeof got);
  return &last;
}

static int wait_for_result(int refused)
{
  if (refused != 0)
    return refused;
  wait_until(&last.done);
  return last.err;
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
    got.count = acl->count;
  }
  on_done_with_stat(c, err, stat, arg);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  got.count = count;
  for (size_t i = 0; i < count; i++)
    note_text(i, "%.*s", (int)paths[i].len, (const char *)paths[i].at);
  on_done(c, err, arg);
}

static void on_count(lk_client *c, int err, int32_t count, void *arg)
{
  got.number = count;
  on_done(c, err, arg);
}

static void on_identities(lk_client *c, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  got.count = count;
  for (size_t i = 0; i < count; i++)
    note_text(i, "%.*s:%.*s", (int)ids[i].scheme.len,
              (const char *)ids[i].scheme.at, (int)ids[i].user.len,
              (const char *)ids[i].user.at);
  on_done(c, err, arg);
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  got.count = count;
  for (size_t i = 0; i < count; i++) {
    const lk_read_result *r = &results[i];

    got.errs[i] = r->err;
    if (r->type == LK_READ_GET)
      note_text(i, "%.*s at %d", (int)r->data.len, (const char *)r->data.at,
                (int)r->stat->version);
    if (r->type == LK_READ_GET_CHILDREN)
      note_text(i, "%zu: %.*s", r->count,
                r->count == 0 ? 0 : (int)r->names->len,
                r->count == 0 ? "" : (const char *)r->names->at);
  }
  on_done(c, err, arg);
}

static bool was_noted(const char *text)
{
  for (size_t i = 0; i < got.count && i < 8; i++) {
    if (strcmp(got.text[i], text) == 0)
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

START_TEST(an_access_list_is_read_and_replaced)
{
  char bob[64], text[256];

  world_enter(_i);
  ck_assert_int_eq(create(here, "/a", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  ck_assert_str_eq(got.text[0], "world:anyone:cdrwa");
  ck_assert_int_eq(last.stat.aversion, 0);
  ck_assert_int_eq(lk_acl_digest(bob, sizeof bob, "bob:secret"), 0);
  snprintf(text, sizeof text, "world:anyone:r,digest:%s:cdrwa", bob);
  ck_assert_int_eq(set_acl(here, "/a", text, 0), 0);
  ck_assert_int_eq(last.stat.aversion, 1);
  ck_assert_int_eq(last.evidence, LK_EVIDENCE_COMMIT);
  ck_assert_int_eq(get(there, full("/a"), NULL), 0);
  ck_assert_int_eq(set(there, full("/a"), lk_text("x"), -1), LK_ERR_NO_AUTH);
  /* The server hides digests from clients without the ADMIN permission. */
  ck_assert_int_eq(get_acl(there, full("/a")), 0);
  ck_assert_str_eq(got.text[0], "world:anyone:r,digest:bob:x:cdrwa");
  ck_assert_int_eq(set_acl(there, full("/a"), "world:anyone:31", -1),
                   LK_ERR_NO_AUTH);
  /* The server computed the same digest as lk_acl_digest(). */
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  ck_assert_str_eq(got.text[0], text);
  ck_assert_int_eq(set_acl(here, "/a", "world:anyone:cdrwa", 0),
                   LK_ERR_BAD_VERSION);
  ck_assert_int_eq(set_acl(here, "/a", "nosuch:x:r", -1), LK_ERR_INVALID_ACL);
  ck_assert_int_eq(set_acl(here, "/a", "auth::ra", 1), 0);
  ck_assert_int_eq(get_acl(here, "/a"), 0);
  snprintf(text, sizeof text, "digest:%s:ra", bob);
  ck_assert_str_eq(got.text[0], text);
  ck_assert_int_eq(get(there, full("/a"), NULL), LK_ERR_NO_AUTH);
  ck_assert_int_eq(get_acl(there, full("/a")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(get_acl(here, "/none"), LK_ERR_NO_NODE);
  ck_assert_int_eq(set_acl(here, "/none", "world:anyone:r", -1),
                   LK_ERR_NO_NODE);
}
END_TEST

/* ---- reads -------------------------------------------------------------- */

START_TEST(multi_read_reports_each_read)
{
  lk_read reads[] = {lk_read_get("/r"), lk_read_get_children("/r"),
                     lk_read_get("/no"), lk_read_get_children("/"),
                     lk_read_get_children("/no")};

  world_enter(_i);
  ck_assert_int_eq(create(here, "/r", "one", 0), 0);
  ck_assert_int_eq(set(here, "/r", lk_text("two"), 0), 0);
  ck_assert_int_eq(create(here, "/r/x", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(wait_for_result(lk_multi_read(here, reads, 5, NULL, on_reads,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 5);
  ck_assert_str_eq(got.text[0], "two at 1");
  ck_assert_str_eq(got.text[1], "1: x");
  ck_assert_int_eq(got.errs[2], LK_ERR_NO_NODE);
  ck_assert_int_eq(got.errs[3], 0);
  ck_assert_int_eq(got.errs[4], LK_ERR_NO_NODE);
  ck_assert_int_eq(wait_for_result(lk_multi_read(here, NULL, 0, NULL, on_reads,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 0);
}
END_TEST

START_TEST(descendants_are_counted)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/n", "", 0), 0);
  ck_assert_int_eq(create(here, "/n/1", "", 0), 0);
  ck_assert_int_eq(create(here, "/n/1/2", "", 0), 0);
  ck_assert_int_eq(create(here, "/no", "", 0), 0);
  ck_assert_int_eq(wait_for_result(lk_count_descendants(
                       here, "/n", NULL, on_count, reset_results())),
                   0);
  ck_assert_int_eq(got.number, 2);
  ck_assert_int_eq(wait_for_result(lk_count_descendants(
                       here, "/", NULL, on_count, reset_results())),
                   0);
  ck_assert(_i ? got.number == 4 : got.number > 4);
  ck_assert_int_eq(wait_for_result(lk_count_descendants(
                       here, "/none", NULL, on_count, reset_results())),
                   LK_ERR_NO_NODE);
}
END_TEST

START_TEST(a_session_knows_its_ephemeral_nodes)
{
  world_enter(_i);
  ck_assert_int_eq(create(here, "/e", "", 0), 0);
  ck_assert_int_eq(create(here, "/e/1", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(here, "/eel", "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(create(there, full("/e/2"), "", LK_EPHEMERAL), 0);
  ck_assert_int_eq(wait_for_result(lk_ephemerals(here, NULL, NULL, on_paths,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 2);
  ck_assert(was_noted("/e/1") && was_noted("/eel"));
  ck_assert_int_eq(wait_for_result(lk_ephemerals(here, "/e/", NULL, on_paths,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 1);
  ck_assert(was_noted("/e/1"));
  ck_assert_int_eq(wait_for_result(lk_ephemerals(here, "/e", NULL, on_paths,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 2);
  ck_assert_int_eq(wait_for_result(lk_ephemerals(here, "/x", NULL, on_paths,
                                                 reset_results())),
                   0);
  ck_assert_uint_eq(got.count, 0);
}
END_TEST

START_TEST(who_am_i_lists_identities)
{
  world_enter(_i);
  ck_assert_int_eq(
      wait_for_result(lk_who_am_i(here, NULL, on_identities, reset_results())),
      0);
  ck_assert_uint_eq(got.count, 1);
  ck_assert_int_eq(strncmp(got.text[0], "ip:127.", 7), 0);
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(
      wait_for_result(lk_who_am_i(here, NULL, on_identities, reset_results())),
      0);
  ck_assert_uint_eq(got.count, 2);
  ck_assert(was_noted("digest:bob"));
}
END_TEST

/* ---- nodes that the server deletes --------------------------------------- */

static int create_ttl(lk_client *c, const char *path, int flags, int64_t ttl_ms)
{
  return wait_for_result(lk_create_ttl(c, path, lk_text("x"), NULL, flags,
                                       ttl_ms, NULL, on_created,
                                       reset_results()));
}

START_TEST(node_with_a_ttl_is_deleted_after_it)
{
  world_enter(_i);
  ck_assert_int_eq(create_ttl(here, "/t", 0, 100), 0);
  ck_assert_str_eq(last.path, "/t");
  ck_assert_int_eq(last.stat.ephemeral_owner, 0);
  ck_assert_int_eq(create_ttl(here, "/stay", 0, LK_TTL_MAX_MS), 0);
  ck_assert_int_eq(create_ttl(here, "/stay/n-", LK_SEQUENTIAL, 100), 0);
  ck_assert_str_eq(last.path, "/stay/n-0000000000");
  ck_assert_int_eq(create_ttl(here, "/t", LK_EPHEMERAL, 100),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(create_ttl(here, "/t", 0, -1), LK_ERR_BAD_ARGUMENT);
  while (exists(here, "/t", NULL) == 0 ||
         exists(here, "/stay/n-0000000000", NULL) == 0)
    ev_sleep(.02);
  ck_assert_int_eq(exists(here, "/stay", NULL), 0);
  ck_assert_int_eq(erase(here, "/stay", -1), 0);
}
END_TEST

START_TEST(multi_creates_every_kind_of_node)
{
  lk_op ops[] = {
      lk_op_create("/k", lk_text(""), NULL, 0),
      lk_op_create2("/k/2", lk_text("two"), NULL, 0),
      lk_op_create("/k/c", lk_text(""), NULL, LK_CONTAINER),
      lk_op_create_ttl("/k/t", lk_text(""), NULL, 0, 100),
      lk_op_create_ttl("/k/t-", lk_text(""), NULL, LK_SEQUENTIAL, 100),
      lk_op_delete("/k/2", 0),
  };

  world_enter(_i);
  ck_assert_int_eq(multi(here, ops, 6), 0);
  ck_assert_str_eq(last.paths[1], "/k/2");
  ck_assert_str_eq(last.paths[2], "/k/c");
  ck_assert_str_eq(last.paths[3], "/k/t");
  ck_assert_str_eq(last.paths[4], "/k/t-0000000003");
  /* createContainer and createTTL reply with a Stat, as create2 does. */
  for (size_t i = 2; i < 5; i++) {
    ck_assert_int_eq(last.results[i].type, LK_OP_CREATE2);
    ck_assert_int_eq(last.versions[i], 0);
  }
  ck_assert_int_eq(create(here, "/k/c/x", "", 0), 0);
  ck_assert_int_eq(erase(here, "/k/c/x", -1), 0);
  while (children(here, "/k", NULL) == 0 && last.count > 0)
    ev_sleep(.02);
  ck_assert_int_eq(last.err, 0);
  ops[3].ttl_ms = -1;
  ck_assert_int_eq(multi(here, ops, 6), LK_ERR_BAD_ARGUMENT);
}
END_TEST

/* ---- configuration ------------------------------------------------------ */

START_TEST(standalone_server_has_no_configuration)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = "1", .version = -1};

  world_enter(_i);
  ck_assert_int_eq(
      wait_for_result(lk_get_config(here, NULL, on_get, reset_results())), 0);
  ck_assert_uint_eq(last.len, 0);
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
      an_access_list_is_read_and_replaced,
      multi_read_reports_each_read,
      descendants_are_counted,
      a_session_knows_its_ephemeral_nodes,
      who_am_i_lists_identities,
      node_with_a_ttl_is_deleted_after_it,
      multi_creates_every_kind_of_node,
      standalone_server_has_no_configuration,
  };
  TCase *t = tcase_create("other");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, 2);
  return t;
}
