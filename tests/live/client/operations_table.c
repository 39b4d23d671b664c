/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The table of operations, and the callbacks that note their results as text.
 */

#include "live/client/operations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

outcome last_result;

/* ---- callbacks ----------------------------------------------------------- */

static void append(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void append(const char *format, ...)
{
  size_t len = strlen(last_result.text);
  va_list args;

  va_start(args, format);
  vsnprintf(last_result.text + len, sizeof last_result.text - len, format,
            args);
  va_end(args);
}

/* Note that the last request has completed. Returns whether it succeeded. */
static bool note_completion(int err)
{
  ck_assert_msg(!last_result.done, "a request completed twice");
  last_result.done = true;
  last_result.err = err;
  last_result.text[0] = '\0';
  return err == 0;
}

/* The part of a path below the test node, which is a child of the directory of
 * the test. */
static const char *below_test_node(const char *path)
{
  const char *directory = path_here("", ""), *node;
  size_t len = strlen(directory);

  ck_assert_msg(strncmp(path, directory, len) == 0, "%s is not in %s", path,
                directory);
  node = path + len + strlen("/");
  return node + strcspn(node, "/");
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(a, b);
}

static void append_names(const lk_bytes *names, size_t count)
{
  char texts[8][64];

  ck_assert_uint_le(count, 8);
  for (size_t i = 0; i < count; i++)
    snprintf(texts[i], sizeof texts[i], "%.*s", (int)names[i].len,
             (const char *)names[i].at);
  qsort(texts, count, sizeof texts[0], compare_names);
  for (size_t i = 0; i < count; i++)
    append("%s%s", i == 0 ? "" : " ", texts[i]);
}

static void append_data(const lk_bytes *data, const lk_stat *stat)
{
  append("%.*s, version %d", (int)data->len, (const char *)data->at,
         (int)stat->version);
}

void on_ended(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  note_completion(err);
}

static void on_created_path(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (note_completion(err))
    append("%s%s", below_test_node(path), stat == NULL ? "" : ", Stat");
}

void on_version(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (note_completion(err))
    append("version %d, aversion %d, %d children", (int)stat->version,
           (int)stat->aversion, (int)stat->num_children);
}

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (note_completion(err))
    append_data(data, stat);
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (!note_completion(err))
    return;
  append_names(names, count);
  if (stat != NULL)
    append(", %d children", (int)stat->num_children);
}

static void on_acl(lk_client *c, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  char text[256];

  (void)c;
  (void)arg;
  if (!note_completion(err))
    return;
  lk_acl_print(text, sizeof text, acl);
  append("%s, aversion %d", text, (int)stat->aversion);
}

static void on_number(lk_client *c, int err, int32_t count, void *arg)
{
  (void)c;
  (void)arg;
  if (note_completion(err))
    append("%d", (int)count);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  char path[256];

  (void)c;
  (void)arg;
  if (!note_completion(err))
    return;
  for (size_t i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%.*s", (int)paths[i].len,
             (const char *)paths[i].at);
    append("%s%s", i == 0 ? "" : " ", below_test_node(path));
  }
}

void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
            void *arg)
{
  (void)c;
  (void)arg;
  if (!note_completion(err))
    return;
  for (size_t i = 0; i < count; i++)
    append("%s%.*s:%.*s", i == 0 ? "" : " ", (int)ids[i].scheme.len,
           (const char *)ids[i].scheme.at, (int)ids[i].user.len,
           (const char *)ids[i].user.at);
}

static void on_results(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  (void)c;
  (void)arg;
  note_completion(err);
  for (size_t i = 0; i < count; i++) {
    const lk_op_result *r = &results[i];

    append("%s", i == 0 ? "" : " ");
    if (r->err != 0)
      append("%s", lk_error_name(r->err));
    else if (r->path != NULL)
      append("%s", below_test_node(r->path));
    else if (r->stat != NULL)
      append("version %d", (int)r->stat->version);
    else
      append("ok");
  }
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  (void)c;
  (void)arg;
  note_completion(err);
  for (size_t i = 0; i < count; i++) {
    const lk_read_result *r = &results[i];

    append("%s", i == 0 ? "" : "; ");
    if (r->err != 0)
      append("%s", lk_error_name(r->err));
    else if (r->type == LK_READ_GET)
      append_data(&r->data, r->stat);
    else
      append_names(r->names, r->count);
  }
}

void on_config(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
               void *arg)
{
  lk_member m;
  int count = 0;

  (void)c;
  (void)stat;
  (void)arg;
  if (!note_completion(err))
    return;
  for (lk_bytes text = *data; lk_config_next(&text, &m) == 1;)
    count++;
  /* A standalone server has no configuration. */
  const int expected = is_ensemble ? 3 : 0;

  append("%s", count == expected ? "all members" : "other members");
}

/* ---- requests ----------------------------------------------------------- */

/* The path `name` below `node`, in one of eight buffers, which are used in
 * turn. */
static const char *join(const char *node, const char *name)
{
  static char text[8][300];
  static unsigned ncalls;
  char *out = text[ncalls++ % 8];

  snprintf(out, sizeof text[0], "%s%s", node, name);
  return out;
}

static int send_create(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create(c, join(node, "/new"), lk_text("x"), NULL, LK_PERSISTENT,
                   call, on_created_path, NULL);
}

static int send_create2(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create2(c, join(node, "/new"), lk_text("x"), NULL, LK_EPHEMERAL,
                    call, on_created_path, NULL);
}

static int send_create_sequential(lk_client *c, const char *node,
                                  const lk_call *call)
{
  return lk_create2(c, join(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                    call, on_created_path, NULL);
}

static int send_create_container(lk_client *c, const char *node,
                                 const lk_call *call)
{
  return lk_create(c, join(node, "/new"), lk_text("x"), NULL, LK_CONTAINER,
                   call, on_created_path, NULL);
}

static int send_create_ttl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create_ttl(c, join(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                       LK_TTL_MAX_MS, call, on_created_path, NULL);
}

static int send_delete(lk_client *c, const char *node, const lk_call *call)
{
  return lk_delete(c, join(node, "/kid"), 0, call, on_ended, NULL);
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
  return lk_set_acl(c, node, &lk_acl_open, 0, call, on_version, NULL);
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
  return lk_ephemerals(c, join(node, "/"), call, on_paths, NULL);
}

static int send_sync(lk_client *c, const char *node, const lk_call *call)
{
  return lk_sync(c, node, call, on_ended, NULL);
}

static int send_multi(lk_client *c, const char *node, const lk_call *call)
{
  const lk_op ops[] = {
      lk_op_check(node, 0),
      lk_op_create(join(node, "/new"), lk_text("x"), NULL, LK_PERSISTENT),
      lk_op_create2(join(node, "/new/e"), lk_text("x"), NULL, LK_EPHEMERAL),
      lk_op_create(join(node, "/box"), lk_text("x"), NULL, LK_CONTAINER),
      lk_op_create_ttl(join(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                       LK_TTL_MAX_MS),
      lk_op_set(node, lk_text("two"), 0),
      lk_op_check(node, 1),
      lk_op_delete(join(node, "/kid"), 0),
  };

  return lk_multi(c, ops, sizeof ops / sizeof ops[0], call, on_results, NULL);
}

static int send_multi_read(lk_client *c, const char *node, const lk_call *call)
{
  const lk_read reads[] = {lk_read_get(node), lk_read_get_children(node),
                           lk_read_get(join(node, "/none"))};

  return lk_multi_read(c, reads, sizeof reads / sizeof reads[0], call, on_reads,
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

/* Each operation: its name, opcode, flags and function; its result and the tree
 * after it; its errors for a missing node and without permission, and the event
 * of its watch. */

/* clang-format off */
const operation operations[] = {
  {"create", 1, WRITES | CREATES, send_create,
   "/new", ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"create2", 15, WRITES | CREATES, send_create2,
   "/new, Stat", ".=one /kid=x /mine*= /new*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"create2, sequential", 15, WRITES | CREATES | NUMBERED,
   send_create_sequential,
   "/n-0000000002, Stat", ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"createContainer", 19, WRITES | CREATES, send_create_container,
   "/new, Stat", ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"createTTL", 21, WRITES | CREATES | NUMBERED, send_create_ttl,
   "/n-0000000002, Stat", ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"delete", 2, WRITES, send_delete,
   "", ".=one /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"exists", 3, READS, send_exists,
   "version 0, aversion 0, 2 children", UNCHANGED,
   LK_ERR_NO_NODE, NO_ERROR, LK_EVENT_CHANGED},
  {"getData", 4, READS, send_get,
   "one, version 0", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHANGED},
  {"setData", 5, WRITES, send_set,
   "version 1, aversion 0, 2 children", ".@1=two /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"getACL", 6, READS, send_get_acl,
   "world:anyone:cdrwa, aversion 0", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"setACL", 7, WRITES, send_set_acl,
   "version 0, aversion 1, 2 children", ".#1=one /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"sync", 9, READS, send_sync,
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getChildren2", 12, READS, send_children,
   "kid mine, 2 children", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHILDREN},
  {"multi", 14, WRITES, send_multi,
   "ok /new /new/e /box /n-0000000004 version 1 ok ok",
   ".@1=two /box=x /mine*= /n-0000000004=x /new=x /new/e*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"multiRead", 22, READS, send_multi_read,
   "one, version 0; kid mine; NO_NODE", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getEphemerals", 103, READS, send_ephemerals,
   "/mine", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"getAllChildrenNumber", 104, READS, send_count,
   "2", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, NO_WATCH},
  {"addWatch", 106, READS, send_persistent_watch,
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, LK_EVENT_CHANGED},
  {"addWatch, recursive", 106, READS, send_recursive_watch,
   "", UNCHANGED,
   NO_ERROR, NO_ERROR, LK_EVENT_CHANGED},
  {"whoAmI", 107, NO_PATH, send_who_am_i,
   "ip:127.0.0.1", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"config", 4, NO_PATH, send_config,
   "all members", UNCHANGED,
   NO_ERROR, NO_ERROR, NO_WATCH},
  {"reconfig", 16, NO_PATH | WRITES | ENSEMBLE_ONLY, send_reconfig,
   "all members", ".=one /kid=x /mine*= reconfigured",
   NO_ERROR, NO_ERROR, NO_WATCH},
};
/* clang-format on */
const size_t noperations = sizeof operations / sizeof operations[0];

/* The operations with ENSEMBLE_ONLY are the last ones of the table. */
size_t operations_accepted(bool ensemble)
{
  size_t count = noperations;

  if (ensemble)
    return count;
  while ((operations[count - 1].flags & ENSEMBLE_ONLY) != 0)
    count--;
  return count;
}
