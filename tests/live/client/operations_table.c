/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The table of operations, and the callbacks that note their results as text.
 */

#include "live/client/operations.h"
#include "support/every_call.h"
#include "support/shown.h"

/* ---- callbacks ----------------------------------------------------------- */

/* Note that the last request has completed. Returns whether it succeeded. */
static bool note_completion(lk_client *c, int err)
{
  on_done(c, err, &last_reply);
  shown_clear();
  return err == 0;
}

void on_ended(lk_client *c, int err, void *arg)
{
  (void)arg;
  note_completion(c, err);
}

static void on_created_path(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg)
{
  (void)arg;
  if (!note_completion(c, err))
    return;
  shown_add_path(path);
  shown_add_stat(stat);
}

void on_version(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)arg;
  if (note_completion(c, err))
    shown_add_stat(stat);
}

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)arg;
  if (!note_completion(c, err))
    return;
  shown_add_data(*data);
  shown_add_stat(stat);
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  (void)arg;
  if (!note_completion(c, err))
    return;
  shown_add_names(names, count);
  shown_add_stat(stat);
}

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  (void)arg;
  if (!note_completion(c, err))
    return;
  shown_add_acl(acl);
  shown_add_stat(stat);
}

static void on_number(lk_client *c, int err, int32_t count, void *arg)
{
  (void)arg;
  if (note_completion(c, err))
    shown_add(" %d", (int)count);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  on_names(c, err, paths, count, NULL, arg);
}

void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
            void *arg)
{
  (void)arg;
  if (note_completion(c, err))
    shown_add_ids(ids, count);
}

static void on_results(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  (void)arg;
  note_completion(c, err);
  shown_add_results(results, count);
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  (void)arg;
  note_completion(c, err);
  shown_add_reads(results, count);
}

void on_config(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
               void *arg)
{
  lk_server_entry m;
  int count = 0;

  (void)stat;
  (void)arg;
  if (!note_completion(c, err))
    return;
  for (lk_bytes text = *data; lk_config_next(&text, &m) == 1;)
    count++;
  /* A standalone server has no configuration. */
  const int expected = is_ensemble ? 3 : 0;

  shown_add("%s", count == expected ? "all members" : "other members");
}

/* ---- requests ----------------------------------------------------------- */

static int send_create(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create(c, every_path(node, "/new"), lk_text("x"), NULL,
                   LK_PERSISTENT, call, on_created_path, NULL);
}

static int send_create2(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create2(c, every_path(node, "/new"), lk_text("x"), NULL,
                    LK_EPHEMERAL, call, on_created_path, NULL);
}

static int send_create_sequential(lk_client *c, const char *node,
                                  const lk_call *call)
{
  return lk_create2(c, every_path(node, "/n-"), lk_text("x"), NULL,
                    LK_SEQUENTIAL, call, on_created_path, NULL);
}

static int send_create_container(lk_client *c, const char *node,
                                 const lk_call *call)
{
  return lk_create(c, every_path(node, "/new"), lk_text("x"), NULL,
                   LK_CONTAINER, call, on_created_path, NULL);
}

static int send_create_ttl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create_ttl(c, every_path(node, "/n-"), lk_text("x"), NULL,
                       LK_SEQUENTIAL, LK_TTL_MAX_MS, call, on_created_path,
                       NULL);
}

static int send_delete(lk_client *c, const char *node, const lk_call *call)
{
  return lk_delete(c, every_path(node, "/kid"), 0, call, on_ended, NULL);
}

static int send_exists(lk_client *c, const char *node, const lk_call *call)
{
  return lk_exists(c, node, call, on_version, NULL);
}

static int send_get(lk_client *c, const char *node, const lk_call *call)
{
  return lk_get(c, node, call, on_data, NULL);
}

static int send_set(lk_client *c, const char *node, const lk_call *call)
{
  return lk_set(c, node, lk_text("two"), 0, call, on_version, NULL);
}

static int send_get_acl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_get_acl(c, node, call, on_acl, NULL);
}

static int send_set_acl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_set_acl(c, node, lk_acl_open(), 0, call, on_version, NULL);
}

static int send_children(lk_client *c, const char *node, const lk_call *call)
{
  return lk_get_children(c, node, call, on_names, NULL);
}

static void ignore_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

static int add_watch(lk_client *c, const char *node, lk_watch_mode mode,
                     const lk_call *call)
{
  lk_call with_callback =
      call == NULL ? (lk_call){.size = sizeof with_callback} : *call;

  /* lk_add_watch() requires a callback for events. */
  if (with_callback.on_event == NULL)
    with_callback.on_event = ignore_event;
  return lk_add_watch(c, node, mode, &with_callback, on_ended, NULL);
}

static int send_persistent_watch(lk_client *c, const char *node,
                                 const lk_call *call)
{
  return add_watch(c, node, LK_WATCH_PERSISTENT, call);
}

static int send_recursive_watch(lk_client *c, const char *node,
                                const lk_call *call)
{
  return add_watch(c, node, LK_WATCH_RECURSIVE, call);
}

static int send_count(lk_client *c, const char *node, const lk_call *call)
{
  return lk_count_descendants(c, node, call, on_number, NULL);
}

static int send_ephemerals(lk_client *c, const char *node, const lk_call *call)
{
  return lk_ephemerals(c, every_path(node, "/"), call, on_paths, NULL);
}

static int send_sync(lk_client *c, const char *node, const lk_call *call)
{
  return lk_server_sync(c, node, call, on_ended, NULL);
}

static int send_multi(lk_client *c, const char *node, const lk_call *call)
{
  lk_op ops[EVERY_OPS];

  return lk_multi(c, ops, every_ops(ops, node, 0, NULL), call, on_results,
                  NULL);
}

static int send_multi_read(lk_client *c, const char *node, const lk_call *call)
{
  lk_read reads[EVERY_READS];

  return lk_multi_read(c, reads, every_reads(reads, node), call, on_reads,
                       NULL);
}

static int send_who_am_i(lk_client *c, const char *node, const lk_call *call)
{
  (void)node;
  return lk_who_am_i(c, call, on_ids, NULL);
}

static int send_config(lk_client *c, const char *node, const lk_call *call)
{
  (void)node;
  return lk_get_config(c, call, on_config, NULL);
}

/* The request names the present members. Nevertheless the ensemble commits a
 * new configuration. */
static int send_reconfig(lk_client *c, const char *node, const lk_call *call)
{
  const lk_reconfiguration change = {
      .size = sizeof change, .members = all_members(), .version = -1};

  (void)node;
  lk_add_auth(c, "digest", lk_text("super:secret"), NULL, NULL);
  return lk_reconfig(c, &change, call, on_config, NULL);
}

/* ---- the table ---------------------------------------------------------- */

#define UNCHANGED NULL
enum { READS = 0, NO_ERROR = 0 };

/* Three fields of the stats of the test node and of a new node. */
#define STAT(version, aversion) \
  "{version " #version ", aversion " #aversion ", 2 children}"
#define NEW_STAT "{version 0, aversion 0, 0 children}"

/* The results of the multi; `created` is the one of the create2 in it. */
#define MULTI_RESULT(created)                              \
  " | 13 0 | 1 0 /new | " created " | 15 0 /box " NEW_STAT \
  " | 15 0 /n-0000000004 " NEW_STAT                        \
  " | 5 0 {version 1, aversion 0, 5 children} | 13 0 | 2 0"

/* Each operation: its name, opcode, flags and function, and its function in the
 * blocking interface; its result and the tree after it; its errors for a
 * missing node and without permission, and the event of its watch. */

/* clang-format off */
const operation operations[] = {
  {"create", 1, WRITES | CREATES, send_create, NULL,
   " /new", ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"create2", 15, WRITES | CREATES, send_create2, "create",
   " /new " NEW_STAT, ".=one /kid=x /mine*= /new*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"create2, sequential", 15, WRITES | CREATES | NUMBERED,
   send_create_sequential, NULL,
   " /n-0000000002 " NEW_STAT, ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"createContainer", 19, WRITES | CREATES, send_create_container, NULL,
   " /new " NEW_STAT, ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"createTTL", 21, WRITES | CREATES | NUMBERED, send_create_ttl, "create_ttl",
   " /n-0000000002 " NEW_STAT, ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"delete", 2, WRITES, send_delete, "delete",
   "", ".=one /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"exists", 3, READS, send_exists, "exists",
   " " STAT(0, 0), UNCHANGED,
   LK_ERR_NO_NODE, NO_ERROR, LK_EVENT_CHANGED},
  {"getData", 4, READS, send_get, "get",
   " data=\"one\" " STAT(0, 0), UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHANGED},
  {"setData", 5, WRITES, send_set, "set",
   " " STAT(1, 0), ".@1=two /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"getACL", 6, READS, send_get_acl, "get_acl",
   " perms=31 scheme=\"world\" id=\"anyone\" " STAT(0, 0), UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"setACL", 7, WRITES, send_set_acl, "set_acl",
   " " STAT(0, 1), ".#1=one /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"sync", 9, READS, send_sync, "server_sync",
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getChildren2", 12, READS, send_children, "get_children",
   " name=\"kid\" name=\"mine\" " STAT(0, 0), UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHILDREN},
  {"multi", 14, WRITES, send_multi, "multi",
   MULTI_RESULT("1 0 /new/e"),
   ".@1=two /box=x /mine*= /n-0000000004=x /new=x /new/e*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"multiRead", 22, READS, send_multi_read, "multi_read",
   " | 4 0 data=\"one\" " STAT(0, 0) " | 8 0 name=\"kid\" name=\"mine\""
   " | -1 -101",
   UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getEphemerals", 103, READS, send_ephemerals, "ephemerals",
   " /mine", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getAllChildrenNumber", 104, READS, send_count, "count_descendants",
   " 2", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"addWatch", 106, READS, send_persistent_watch, "add_watch",
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, LK_EVENT_CHANGED},
  {"addWatch, recursive", 106, READS, send_recursive_watch, NULL,
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, LK_EVENT_CHANGED},
  {"whoAmI", 107, NO_PATH, send_who_am_i, "who_am_i",
   " scheme=\"ip\" user=\"127.0.0.1\"", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"config", 4, NO_PATH, send_config, NULL,
   "all members", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"reconfig", 16, NO_PATH | WRITES | ENSEMBLE_ONLY, send_reconfig, NULL,
   "all members", ".=one /kid=x /mine*= reconfigured",
   NO_ERROR, NO_ERROR, NO_WATCH},
};
/* clang-format on */
const size_t noperations = sizeof operations / sizeof operations[0];

const char *result_of(const operation *o)
{
  return o->op == 14 && server_has(SERVER_STAT_OF_CREATE_IN_MULTI)
             ? MULTI_RESULT("15 0 /new/e " NEW_STAT)
             : o->result;
}

int denied_err_of(const operation *o)
{
  return o->op == 3 && server_has(SERVER_EXISTS_NEEDS_READ) ? LK_ERR_NO_AUTH
                                                            : o->denied_err;
}
