/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Every request of the blocking interface, field by field: which request is
   sent, and which fields of the reply the caller gets. */

#include <latchkey/sync.h>

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "support/every_call.h"
#include "support/shown.h"
#include "support/suite.h"
#include "support/wire.h"
#include "unit/fake/scripted.h"

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

static const lk_acl two_acls[] = {
    {LK_PERM_READ, {"ip", 2}, {"127.0.0.1", 9}},
    {LK_PERM_ADMIN, {"sasl", 4}, {"bob", 3}},
};
static const lk_acls acls = {two_acls, 2};

/* ---- the table ----------------------------------------------------------- */

#define STAT_BODY                                                        \
  " long=6 long=102 long=103 long=104 int=5 int=6 int=7 long=108 int=9 " \
  "int=10 long=111"
#define ACLS                                                                 \
  " acl#=2 perms=1 scheme=\"ip\" id=\"127.0.0.1\" perms=16 scheme=\"sasl\" " \
  "id=\"bob\""
#define STAT_SHOWN "{6 102 103 104 5 6 7 108 9 10 111}"
#define MULTI                                                              \
  "multi | check path=\"/a\" version=7 | create path=\"/a/new\" "          \
  "data=\"x\"" ACLS " flags=0 | create2 path=\"/a/new/e\" data=\"x\"" ACLS \
  " flags=1"                                                               \
  " | createContainer path=\"/a/box\" data=\"x\"" ACLS " flags=4"          \
  " | createTTL path=\"/a/n-\" data=\"x\"" ACLS                            \
  " flags=6 ttl_ms=1099511627775"                                          \
  " | setData path=\"/a\" data=\"two\" version=7 | check path=\"/a\" "     \
  "version=8"                                                              \
  " | delete path=\"/a/kid\" version=7\n"

/* The reads of a reliable write: one before the write, and two that find out
   after a lost connection whether the write was executed. */
#define ASKS_FIRST "exists path=\"/\" watch=0\n"
#define LOOKS                             \
  "multi | check path=\"/\" version=-1\n" \
  "getData path=\"/a\" watch=0\n"
/* The replies to LOOKS, if the node exists. */
#define PROOF "8 ok part=13,0 end"
#define FOUND "8 ok \"x\"" STAT_BODY

typedef struct row {
  const char *name;  /* of the request, as in every_calls[] */
  const char *asked; /* the expected requests */
  const char *replies[SCRIPTED_REPLIES];
  bool is_shared;    /* others write to the node */
  unsigned lost;     /* which request is lost with its connection; 0: none */
  int err;           /* the expected result of the call */
  const char *shown; /* the expected fields, as shown.c prints them */
} row;

/* Each request for the node "/a", with version 7 and the access list `acls`. */
static const row rows[] = {
    {"create",
     "create2 path=\"/a/new\" data=\"x\"" ACLS " flags=1\n",
     {"7 ok \"/a/new\"" STAT_BODY},
     .shown = " result /a/new " STAT_SHOWN " zxid=7"},
    {"delete", "delete path=\"/a/kid\" version=7\n", {"7 ok"}, .shown = ""},
    {"exists",
     "exists path=\"/a\" watch=0\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {"get",
     "getData path=\"/a\" watch=0\n",
     {"7 ok \"data\"" STAT_BODY},
     .shown = " result data=\"data\" " STAT_SHOWN},
    {"get",
     "getData path=\"/a\" watch=0\n",
     {"7 ok null" STAT_BODY},
     .shown = " result " STAT_SHOWN},
    {"get",
     "getData path=\"/a\" watch=0\n",
     {"7 NO_NODE"},
     .err = LK_ERR_NO_NODE,
     .shown = ""},
    {"set",
     "setData path=\"/a\" data=\"two\" version=7\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {"get_children",
     "getChildren2 path=\"/a\" watch=0\n",
     {"7 ok count=2 \"x\" \"yy\"" STAT_BODY},
     .shown = " result name=\"x\" name=\"yy\" " STAT_SHOWN " count=2"},
    {"server_sync", "sync path=\"/a\"\n", {"7 ok \"/a\""}, .shown = ""},
    {"multi",
     MULTI,
     {"7 ok part=13,0 part=1,0 \"/a/new\" part=15,0 \"/a/new/e\"" STAT_BODY
      " part=15,0 \"/a/box\"" STAT_BODY
      " part=15,0 \"/a/n-0000000001\"" STAT_BODY " part=5,0" STAT_BODY
      " part=13,0 part=2,0 end"},
     .shown = " result | 13 0 | 1 0 /a/new | 15 0 /a/new/e " STAT_SHOWN
              " | 15 0 /a/box " STAT_SHOWN " | 15 0 /a/n-0000000001 " STAT_SHOWN
              " | 5 0 " STAT_SHOWN " | 13 0 | 2 0 count=8 zxid=7"},
    {"multi",
     MULTI,
     {"7 ok part=-1,0 int=0 part=-1,0 int=0 part=-1,0 int=0 part=-1,0 "
      "int=0 part=-1,0 int=0 part=-1,-103 int=-103 part=-1,-2 int=-2 "
      "part=-1,-2 int=-2 end"},
     .err = LK_ERR_BAD_VERSION,
     .shown = " result | -1 0 | -1 0 | -1 0 | -1 0 | -1 0 | -1 -103 | -1 -2 "
              "| -1 -2 count=8 zxid=7"},
    {"create_ttl",
     "createTTL path=\"/a/n-\" data=\"x\"" ACLS
     " flags=6 ttl_ms=1099511627775\n",
     {"7 ok \"/a/n-0000000012\"" STAT_BODY},
     .shown = " result /a/n-0000000012 " STAT_SHOWN " zxid=7"},
    {"count_descendants",
     "getAllChildrenNumber path=\"/a\"\n",
     {"7 ok int=42"},
     .shown = " 42"},
    {"ephemerals",
     "getEphemerals path=\"/a/\"\n",
     {"7 ok count=2 \"/a/x\" \"/a/yy\""},
     .shown = " result /a/x /a/yy count=2"},
    {"get_acl",
     "getACL path=\"/a\"\n",
     {"7 ok count=2 int=1 \"ip\" \"::1\" int=31 \"world\" "
      "\"anyone\"" STAT_BODY},
     .shown =
         " result perms=1 scheme=\"ip\" id=\"::1\" perms=31 scheme=\"world\" "
         "id=\"anyone\" " STAT_SHOWN},
    {"set_acl",
     "setACL path=\"/a\"" ACLS " version=7\n",
     {"7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {"multi_read",
     "multiRead | getData path=\"/a\" watch=0 | getChildren path=\"/a\" "
     "watch=0 | getData path=\"/a/none\" watch=0\n",
     {"7 ok part=4,0 \"data\"" STAT_BODY " part=8,0 count=2 \"x\" \"yy\" "
      "part=-1,-101 int=-101 end"},
     .shown = " result | 4 0 data=\"data\" " STAT_SHOWN
              " | 8 0 name=\"x\" name=\"yy\" | -1 -101 count=3"},
    {"who_am_i",
     "whoAmI\n",
     {"7 ok count=2 \"ip\" \"127.0.0.1\" \"digest\" \"bob\""},
     .shown = " result scheme=\"ip\" user=\"127.0.0.1\" scheme=\"digest\" "
              "user=\"bob\" "
              "count=2"},
    {"get_config",
     "getData path=\"/zookeeper/config\" watch=0\n",
     {"7 ok \"server.1=a\"" STAT_BODY},
     .shown = " result data=\"server.1=a\" " STAT_SHOWN},
    {"reconfig",
     "reconfig joining=\"server.4=host:2888:3888;2181\" leaving=\"1,3\" "
     "new_members=null config_id=7\n",
     {"7 ok \"server.4=a\"" STAT_BODY},
     .shown = " result data=\"server.4=a\" " STAT_SHOWN},
    {"add_auth",
     "auth type=0 scheme=\"digest\" auth[10]\n",
     {"0 ok"},
     .shown = ""},
    {"create_with_parents",
     "create2 path=\"/a/new\" data=\"x\"" ACLS " flags=1\n"
     "createContainer path=\"/a\" data=\"\" acl#=1 perms=1 scheme=\"world\" "
     "id=\"anyone\" flags=4\n"
     "create2 path=\"/a/new\" data=\"x\"" ACLS " flags=1\n",
     {"7 NO_NODE", "8 ok \"/a\"" STAT_BODY, "9 ok \"/a/new\"" STAT_BODY},
     .shown = " result /a/new " STAT_SHOWN " zxid=9"},
    {"delete_recursive",
     "delete path=\"/a\" version=-1\n"
     "getChildren2 path=\"/a\" watch=0\n"
     "delete path=\"/a/b\" version=-1\n"
     "delete path=\"/a\" version=-1\n",
     {"7 NOT_EMPTY", "7 ok count=1 \"b\"" STAT_BODY, "8 ok", "9 ok"},
     .shown = " 2"},
    {"create_reliable",
     "exists path=\"/\" watch=0\n"
     "createContainer path=\"/a\" data=\"x\"" ACLS " flags=4\n",
     {"5 ok" STAT_BODY, "7 ok \"/a\"" STAT_BODY},
     .shown = " result /a " STAT_SHOWN " zxid=7"},
    {"set_reliable",
     "exists path=\"/\" watch=0\n"
     "setData path=\"/a\" data=\"x\" version=7\n",
     {"5 ok" STAT_BODY, "7 ok" STAT_BODY},
     .shown = " " STAT_SHOWN},
    {"delete_reliable",
     "exists path=\"/\" watch=0\n"
     "delete path=\"/a\" version=7\n",
     {"5 ok" STAT_BODY, "7 ok"},
     .shown = ""},
    /* The write is lost with its connection, and recovered on the next. */
    {"create_reliable",
     ASKS_FIRST "createContainer path=\"/a\" data=\"x\"" ACLS
                " flags=4\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .lost = 2,
     .shown = " result /a " STAT_SHOWN " zxid=8"},
    {"create_reliable",
     ASKS_FIRST "createContainer path=\"/a\" data=\"x\"" ACLS " flags=4\n"
                "multi | check path=\"/\" version=-1\n"
                "exists path=\"/\" watch=0\n"
                "getData path=\"/a\" watch=0\n",
     {"5 ok" STAT_BODY, PROOF, "8 ok" STAT_BODY, FOUND},
     .is_shared = true,
     .lost = 2,
     .err = LK_ERR_IN_DOUBT,
     .shown = ""},
    {"set_reliable",
     ASKS_FIRST "setData path=\"/a\" data=\"x\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .lost = 2,
     .shown = " " STAT_SHOWN},
    {"set_reliable",
     ASKS_FIRST "setData path=\"/a\" data=\"x\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, FOUND},
     .is_shared = true,
     .lost = 2,
     .err = LK_ERR_IN_DOUBT,
     .shown = ""},
    {"delete_reliable",
     ASKS_FIRST "delete path=\"/a\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, "8 NO_NODE"},
     .lost = 2,
     .shown = ""},
    {"delete_reliable",
     ASKS_FIRST "delete path=\"/a\" version=7\n" LOOKS,
     {"5 ok" STAT_BODY, PROOF, "8 NO_NODE"},
     .is_shared = true,
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
    int err = every_call_named(r->name)->call(
        &(every_object){.client = client,
                        .path = "/a",
                        .version = 7,
                        .acl = &acls,
                        .is_shared = r->is_shared});

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

static bool has_row(const char *name)
{
  bool found = false;

  for (size_t i = 0; i < ROWS; i++)
    found = found || strcmp(rows[i].name, name) == 0;
  return found;
}

/* A function that sends something is a request, if it neither makes nor frees
 * an object. The requests of add_watch are in call_options.c, and those of
 * roster_get in memberships.c: both also remove a watch. */
START_TEST(every_request_has_a_row)
{
  static const char *const no_replies[SCRIPTED_REPLIES];

  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    if (c->no_object == 0 || c->no_out != NOT_EXPECTED || has_row(c->name) ||
        strcmp(c->name, "client_close") == 0 ||
        strcmp(c->name, "add_watch") == 0 || strcmp(c->name, "roster_get") == 0)
      continue;
    start();
    scripted_set(&zk, no_replies, 0);
    /* client_wait_state waits for the state of now, which must stay. */
    ck_assert_int_eq(lk_sync_client_wait_state(client, LK_STATE_CONNECTED, NULL),
                     0);
    (void)c->call(&(every_object){.client = client, .path = "/a"});
    ck_assert_int_eq(lk_sync_server_sync(client, "/", NULL), LK_ERR_NO_AUTH);
    ck_assert_msg(scripted_was_asked(&zk, "sync path=\"/\"\n"), "%s", c->name);
    stop();
  }
}
END_TEST

SUITE("request_fields", every_field_is_sent_and_received,
      every_request_has_a_row)
