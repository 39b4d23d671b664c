/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Every request of the blocking interface, field by field: which request is
   sent, and which fields of the reply the caller gets. */

#include <latchkey/sync.h>

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/wire.h"
#include "unit/fake/scripted.h"
#include "unit/sync/shown.h"

static scripted zk;
static lk_sync_client *client;

static void start(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .session_timeout_ms = 6000};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  scripted_start(&zk);
  client_config.hosts = zk.loopback.hosts;
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
}

static void stop(void)
{
  lk_sync_client_free(client);
  scripted_stop(&zk);
}

/* ---- one function for each call ------------------------------------------ */

static const lk_acl two_acls[] = {
    {LK_PERM_READ, {"ip", 2}, {"127.0.0.1", 9}},
    {LK_PERM_ADMIN, {"sasl", 4}, {"bob", 3}},
};
static const lk_acls acls = {two_acls, 2};

#define RESULT(name, ...) RESULT_OF(name, name, __VA_ARGS__)
#define RESULT_OF(label, name, ...)                    \
  static int do_##label(const lk_sync_call *call)      \
  {                                                    \
    lk_sync_result *r = NULL;                          \
    int err = lk_sync_##name(client, &r, __VA_ARGS__); \
                                                       \
    shown_add_result(r);                               \
    return err;                                        \
  }

#define STAT(name, ...) STAT_OF(name, name, __VA_ARGS__)
#define STAT_OF(label, name, ...)                         \
  static int do_##label(const lk_sync_call *call)         \
  {                                                       \
    lk_stat stat = {.czxid = -1};                         \
    int err = lk_sync_##name(client, &stat, __VA_ARGS__); \
                                                          \
    if (stat.czxid != -1)                                 \
      shown_add_stat(&stat);                              \
    return err;                                           \
  }

#define ERROR(name, ...) ERROR_OF(name, name, __VA_ARGS__)
#define ERROR_OF(label, name, ...)                \
  static int do_##label(const lk_sync_call *call) \
  {                                               \
    return lk_sync_##name(client, __VA_ARGS__);   \
  }

RESULT(create, "/a", lk_text("data"), &acls, LK_EPHEMERAL | LK_SEQUENTIAL, call)
ERROR(delete, "/a", 7, call)
STAT(exists, "/a", call)
RESULT(get, "/a", call)
STAT(set, "/a", lk_text("data"), 7, call)
RESULT(get_children, "/a", call)
ERROR(sync, "/a", call)
RESULT(create_ttl, "/a", lk_text("data"), &acls, LK_SEQUENTIAL, 5000, call)
RESULT(ephemerals, "/a", call)
RESULT(get_acl, "/a", call)
STAT(set_acl, "/a", &acls, 7, call)
RESULT(who_am_i, call)
RESULT(get_config, call)
ERROR(add_auth, "digest", lk_text("bob:secret"), call)
RESULT(create_reliable, "/a", lk_text("data"), &acls, LK_CONTAINER, true, call)
STAT(set_reliable, "/a", lk_text("data"), 7, true, call)
ERROR(delete_reliable, "/a", 7, true, call)
RESULT_OF(create_reliable_with_others, create_reliable, "/a", lk_text("data"),
          &acls, LK_CONTAINER, false, call)
STAT_OF(set_reliable_with_others, set_reliable, "/a", lk_text("data"), 7, false,
        call)
ERROR_OF(delete_reliable_with_others, delete_reliable, "/a", 7, false, call)

static int do_count(const lk_sync_call *call)
{
  int32_t count = -1;
  int err = lk_sync_count_descendants(client, &count, "/a", call);

  shown_add(" %d", (int)count);
  return err;
}

static int do_multi(const lk_sync_call *call)
{
  const lk_op ops[] = {
      lk_op_create2("/a/b", lk_text("data"), &acls, LK_SEQUENTIAL),
      lk_op_set("/a/c", lk_text("more"), 7), lk_op_delete("/a/d", 8),
      lk_op_check("/a/e", 9)};
  lk_sync_result *r = NULL;
  int err = lk_sync_multi(client, &r, ops, 4, call);

  shown_add_result(r);
  return err;
}

static int do_multi_read(const lk_sync_call *call)
{
  const lk_read reads[] = {lk_read_get("/a"), lk_read_get_children("/b"),
                           lk_read_get("/no")};
  lk_sync_result *r = NULL;
  int err = lk_sync_multi_read(client, &r, reads, 3, call);

  shown_add_result(r);
  return err;
}

static int do_reconfig(const lk_sync_call *call)
{
  const lk_reconfiguration change = {.size = sizeof change,
                                     .joining = "server.4=host:2888:3888;2181",
                                     .leaving = "1,3",
                                     .version = 7};
  lk_sync_result *r = NULL;
  int err = lk_sync_reconfig(client, &r, &change, call);

  shown_add_result(r);
  return err;
}

static int do_create_with_parents(const lk_sync_call *call)
{
  const lk_parents_config parents = {
      .size = sizeof parents, .containers = true, .acl = &lk_acl_read};
  lk_sync_result *r = NULL;
  int err = lk_sync_create_with_parents(client, &r, "/a/b", lk_text("data"),
                                        &acls, LK_EPHEMERAL, &parents, call);

  shown_add_result(r);
  return err;
}

static int do_delete_recursive(const lk_sync_call *call)
{
  size_t deleted = 99;
  int err = lk_sync_delete_recursive(client, &deleted, "/a", call);

  shown_add(" %zu", deleted);
  return err;
}

/* ---- the table ----------------------------------------------------------- */

#define STAT_BODY                                                          \
  " long=6 long=102 long=103 long=104 int=5 int=6 int=7 long=108 int=9 " \
  "int=10 long=111"
#define ACLS                                                                 \
  " acl#=2 perms=1 scheme=\"ip\" id=\"127.0.0.1\" perms=16 scheme=\"sasl\" " \
  "id=\"bob\""
#define STAT_SHOWN "{6 102 103 104 5 6 7 108 9 10 111}"

/* The reads of a reliable write: one before the write, and two that find out
   after a lost connection whether the write was executed. */
#define ASKS_FIRST "exists path=\"/\" watch=0\n"
#define LOOKS                             \
  "multi | check path=\"/\" version=-1\n" \
  "getData path=\"/a\" watch=0\n"
/* The replies to LOOKS, if the node exists. */
#define PROOF "8 ok part=13,0 end"
#define FOUND "8 ok \"data\"" STAT_BODY

typedef struct row {
  const char *name;
  int (*call)(const lk_sync_call *call);
  const char *asked; /* the expected requests */
  const char *replies[SCRIPTED_REPLIES];
  unsigned lost;     /* which request is lost with its connection; 0: none */
  int err;           /* the expected result of the call */
  const char *shown; /* the expected fields, as shown.c prints them */
} row;

#define ROW(name) #name, do_##name

static const row rows[] = {
    {ROW(create),
     "create2 path=\"/a\" data=\"data\"" ACLS " flags=3\n",
     {"7 ok \"/a0000000012\"" STAT_BODY},
     .shown = " result /a0000000012 " STAT_SHOWN " zxid=7"},
    {ROW(delete), "delete path=\"/a\" version=7\n", {"7 ok"}, .shown = ""},
    {ROW(exists),
     "exists path=\"/a\" watch=0\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {ROW(get),
     "getData path=\"/a\" watch=0\n",
     {"7 ok \"data\"" STAT_BODY},
     .shown = " result data=\"data\" " STAT_SHOWN},
    {ROW(set),
     "setData path=\"/a\" data=\"data\" version=7\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {ROW(get_children),
     "getChildren2 path=\"/a\" watch=0\n",
     {"7 ok count=2 \"x\" \"yy\"" STAT_BODY},
     .shown = " result name=\"x\" name=\"yy\" " STAT_SHOWN " count=2"},
    {ROW(sync), "sync path=\"/a\"\n", {"7 ok \"/a\""}, .shown = ""},
    {ROW(multi),
     "multi | create2 path=\"/a/b\" data=\"data\"" ACLS
     " flags=2 | setData path=\"/a/c\" data=\"more\" version=7 | delete "
     "path=\"/a/d\" version=8 | check path=\"/a/e\" version=9\n",
     {"7 ok part=15,0 \"/a/b0000000001\"" STAT_BODY " part=5,0" STAT_BODY
      " part=2,0 part=13,0 end"},
     .shown = " result | 15 0 /a/b0000000001 " STAT_SHOWN " | 5 0 " STAT_SHOWN
              " | 2 0 | 13 0 count=4 zxid=7"},
    {ROW(create_ttl),
     "createTTL path=\"/a\" data=\"data\"" ACLS " flags=6 ttl_ms=5000\n",
     {"7 ok \"/a0000000012\"" STAT_BODY},
     .shown = " result /a0000000012 " STAT_SHOWN " zxid=7"},
    {ROW(count),
     "getAllChildrenNumber path=\"/a\"\n",
     {"7 ok int=42"},
     .shown = " 42"},
    {ROW(ephemerals),
     "getEphemerals path=\"/a\"\n",
     {"7 ok count=2 \"/a/x\" \"/a/yy\""},
     .shown = " result name=\"/a/x\" name=\"/a/yy\" count=2"},
    {ROW(get_acl),
     "getACL path=\"/a\"\n",
     {"7 ok count=2 int=1 \"ip\" \"::1\" int=31 \"world\" "
      "\"anyone\"" STAT_BODY},
     .shown =
         " result perms=1 scheme=\"ip\" id=\"::1\" perms=31 scheme=\"world\" "
         "id=\"anyone\" " STAT_SHOWN},
    {ROW(set_acl),
     "setACL path=\"/a\"" ACLS " version=7\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {ROW(multi_read),
     "multiRead | getData path=\"/a\" watch=0 | getChildren path=\"/b\" "
     "watch=0 | getData path=\"/no\" watch=0\n",
     {"7 ok part=4,0 \"data\"" STAT_BODY " part=8,0 count=2 \"x\" \"yy\" "
      "part=-1,-101 int=-101 end"},
     .shown = " result | 4 0 data=\"data\" " STAT_SHOWN
              " | 8 0 name=\"x\" name=\"yy\" | -1 -101 count=3"},
    {ROW(who_am_i),
     "whoAmI\n",
     {"7 ok count=2 \"ip\" \"127.0.0.1\" \"digest\" \"bob\""},
     .shown = " result scheme=\"ip\" user=\"127.0.0.1\" scheme=\"digest\" "
              "user=\"bob\" "
              "count=2"},
    {ROW(get_config),
     "getData path=\"/zookeeper/config\" watch=0\n",
     {"7 ok \"server.1=a\"" STAT_BODY},
     .shown = " result data=\"server.1=a\" " STAT_SHOWN},
    {ROW(reconfig),
     "reconfig joining=\"server.4=host:2888:3888;2181\" leaving=\"1,3\" "
     "new_members=null config_id=7\n",
     {"7 ok \"server.4=a\"" STAT_BODY},
     .shown = " result data=\"server.4=a\" " STAT_SHOWN},
    {ROW(add_auth),
     "auth type=0 scheme=\"digest\" auth[10]\n",
     {"0 ok"},
     .shown = ""},
    {ROW(create_with_parents),
     "create2 path=\"/a/b\" data=\"data\"" ACLS " flags=1\n"
     "createContainer path=\"/a\" data=\"\" acl#=1 perms=1 scheme=\"world\" "
     "id=\"anyone\" flags=4\n"
     "create2 path=\"/a/b\" data=\"data\"" ACLS " flags=1\n",
     {"7 NO_NODE", "8 ok \"/a\"" STAT_BODY, "9 ok \"/a/b\"" STAT_BODY},
     .shown = " result /a/b " STAT_SHOWN " zxid=9"},
    {ROW(delete_recursive),
     "delete path=\"/a\" version=-1\n"
     "getChildren2 path=\"/a\" watch=0\n"
     "delete path=\"/a/b\" version=-1\n"
     "delete path=\"/a\" version=-1\n",
     {"7 NOT_EMPTY", "7 ok count=1 \"b\"" STAT_BODY, "8 ok", "9 ok"},
     .shown = " 2"},
    {ROW(create_reliable),
     "exists path=\"/\" watch=0\n"
     "createContainer path=\"/a\" data=\"data\"" ACLS " flags=4\n",
     {"5 ok" STAT_BODY, "7 ok \"/a\"" STAT_BODY},
     .shown = " result /a " STAT_SHOWN " zxid=7"},
    {ROW(set_reliable),
     "exists path=\"/\" watch=0\n"
     "setData path=\"/a\" data=\"data\" version=7\n",
     {"5 ok" STAT_BODY, "7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {ROW(delete_reliable),
     "exists path=\"/\" watch=0\n"
     "delete path=\"/a\" version=7\n",
     {"5 ok" STAT_BODY, "7 ok"},
     .shown = ""},
    /* The write is lost with its connection, and recovered on the next. */
    {ROW(create_reliable),
     ASKS_FIRST "createContainer path=\"/a\" data=\"data\"" ACLS
                " flags=4\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .lost = 2,
     .shown = " result /a " STAT_SHOWN " zxid=8"},
    {ROW(create_reliable_with_others),
     ASKS_FIRST "createContainer path=\"/a\" data=\"data\"" ACLS " flags=4\n"
                "multi | check path=\"/\" version=-1\n"
                "exists path=\"/\" watch=0\n"
                "getData path=\"/a\" watch=0\n",
     {"5 ok" STAT_BODY, PROOF, "8 ok" STAT_BODY, FOUND},
     .lost = 2,
     .err = LK_ERR_IN_DOUBT,
     .shown = ""},
    {ROW(set_reliable),
     ASKS_FIRST "setData path=\"/a\" data=\"data\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .lost = 2,
     .shown = " " STAT_SHOWN},
    {ROW(set_reliable_with_others),
     ASKS_FIRST "setData path=\"/a\" data=\"data\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .lost = 2,
     .err = LK_ERR_IN_DOUBT,
     .shown = ""},
    {ROW(delete_reliable),
     ASKS_FIRST "delete path=\"/a\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, "8 NO_NODE"},
     .lost = 2,
     .shown = ""},
    {ROW(delete_reliable_with_others),
     ASKS_FIRST "delete path=\"/a\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, "8 NO_NODE"},
     .lost = 2,
     .err = LK_ERR_IN_DOUBT,
     .shown = ""},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(every_field_is_sent_and_received)
{
  bool same = true;

  for (size_t i = 0; i < ROWS; i++) {
    const row *r = &rows[i];

    start();
    scripted_set(&zk, r->replies, r->lost);
    shown_clear();
    int err = r->call(NULL);

    same = scripted_was_asked(&zk, r->asked) && same;
    if (err != r->err || strcmp(shown_text(), r->shown) != 0) {
      fprintf(stderr, "%s: %d, shown:\n%s\nexpected:\n%s\n", r->name, err,
              shown_text(), r->shown);
      same = false;
    }
    stop();
  }
  ck_assert(same);
}
END_TEST

SUITE("request_fields", every_field_is_sent_and_received)
