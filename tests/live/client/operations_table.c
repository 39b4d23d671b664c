/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/client/operations.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

outcome last_result;

/* ---- callbacks ----------------------------------------------------------- */

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
  size_t len = strlen(last_result.text);
  va_list args;

  va_start(args, format);
  vsnprintf(last_result.text + len, sizeof last_result.text - len, format,
            args);
  va_end(args);
}

static bool result_begin(int err)
{
  ck_assert_msg(!last_result.done, "a request completed twice");
  last_result.done = true;
  last_result.err = err;
  last_result.text[0] = '\0';
  return err == 0;
}

/* The part of a path below the test node. */
static const char *inner(const char *path)
{
  const char *start = path_here("", "");
  size_t len = strlen(start);

  ck_assert_msg(strncmp(path, start, len) == 0, "%s is not in %s", path, start);
  return path + len + 1 + strcspn(path + len + 1, "/");
}

static int by_text(const void *a, const void *b)
{
  return strcmp(a, b);
}

static void put_names(const lk_bytes *names, size_t count)
{
  char texts[8][64];

  ck_assert_uint_le(count, 8);
  for (size_t i = 0; i < count; i++)
    snprintf(texts[i], sizeof texts[i], "%.*s", (int)names[i].len,
             (const char *)names[i].at);
  qsort(texts, count, sizeof texts[0], by_text);
  for (size_t i = 0; i < count; i++)
    put("%s%s", i == 0 ? "" : " ", texts[i]);
}

static void put_data(const lk_bytes *data, const lk_stat *stat)
{
  put("%.*s, version %d", (int)data->len, (const char *)data->at,
      (int)stat->version);
}

void on_ended(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)arg;
  result_begin(err);
}

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (result_begin(err))
    put("%s%s", inner(path), stat == NULL ? "" : ", Stat");
}

void on_version(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (result_begin(err))
    put("version %d, list %d, %d children", (int)stat->version,
        (int)stat->aversion, (int)stat->num_children);
}

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (result_begin(err))
    put_data(data, stat);
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  (void)c;
  (void)arg;
  if (!result_begin(err))
    return;
  put_names(names, count);
  if (stat != NULL)
    put(", %d children", (int)stat->num_children);
}

static void on_list(lk_client *c, int err, const lk_acls *acl,
                    const lk_stat *stat, void *arg)
{
  char text[256];

  (void)c;
  (void)arg;
  if (!result_begin(err))
    return;
  lk_acl_print(text, sizeof text, acl);
  put("%s, list %d", text, (int)stat->aversion);
}

static void on_number(lk_client *c, int err, int32_t count, void *arg)
{
  (void)c;
  (void)arg;
  if (result_begin(err))
    put("%d", (int)count);
}

static void on_paths(lk_client *c, int err, const lk_bytes *paths, size_t count,
                     void *arg)
{
  char path[256];

  (void)c;
  (void)arg;
  if (!result_begin(err))
    return;
  for (size_t i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%.*s", (int)paths[i].len,
             (const char *)paths[i].at);
    put("%s%s", i == 0 ? "" : " ", inner(path));
  }
}

void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
            void *arg)
{
  (void)c;
  (void)arg;
  if (!result_begin(err))
    return;
  for (size_t i = 0; i < count; i++)
    put("%s%.*s:%.*s", i == 0 ? "" : " ", (int)ids[i].scheme.len,
        (const char *)ids[i].scheme.at, (int)ids[i].user.len,
        (const char *)ids[i].user.at);
}

static void on_results(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  (void)c;
  (void)arg;
  result_begin(err);
  for (size_t i = 0; i < count; i++) {
    const lk_op_result *r = &results[i];

    put("%s", i == 0 ? "" : " ");
    if (r->err != 0)
      put("%s", lk_error_name(r->err));
    else if (r->path != NULL)
      put("%s", inner(r->path));
    else if (r->stat != NULL)
      put("version %d", (int)r->stat->version);
    else
      put("ok");
  }
}

static void on_reads(lk_client *c, int err, const lk_read_result *results,
                     size_t count, void *arg)
{
  (void)c;
  (void)arg;
  result_begin(err);
  for (size_t i = 0; i < count; i++) {
    const lk_read_result *r = &results[i];

    put("%s", i == 0 ? "" : "; ");
    if (r->err != 0)
      put("%s", lk_error_name(r->err));
    else if (r->type == LK_READ_GET)
      put_data(&r->data, r->stat);
    else
      put_names(r->names, r->count);
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
  if (!result_begin(err))
    return;
  for (lk_bytes text = *data; lk_config_next(&text, &m) == 1;)
    count++;
  put(is_ensemble == (count == 3) ? "as many servers as there are"
                                  : "%d servers",
      count);
}

/* ---- requests ----------------------------------------------------------- */

/* A path below another; in one of eight buffers that are used in turn. */
static const char *below(const char *node, const char *name)
{
  static char text[8][300];
  static unsigned turn;
  char *out = text[turn++ % 8];

  snprintf(out, sizeof text[0], "%s%s", node, name);
  return out;
}

static int send_create(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create(c, below(node, "/new"), lk_text("x"), NULL, 0, call, on_made,
                   NULL);
}

static int send_create2(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create2(c, below(node, "/new"), lk_text("x"), NULL, LK_EPHEMERAL,
                    call, on_made, NULL);
}

static int send_sequential(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create2(c, below(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                    call, on_made, NULL);
}

static int send_container(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create(c, below(node, "/new"), lk_text("x"), NULL, LK_CONTAINER,
                   call, on_made, NULL);
}

static int send_ttl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_create_ttl(c, below(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                       LK_TTL_MAX_MS, call, on_made, NULL);
}

static int send_delete(lk_client *c, const char *node, const lk_call *call)
{
  return lk_delete(c, below(node, "/kid"), 0, call, on_ended, NULL);
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
  return lk_get_acl(c, node, call, on_list, NULL);
}

static int send_set_acl(lk_client *c, const char *node, const lk_call *call)
{
  return lk_set_acl(c, node, &lk_acl_open, 0, call, on_version, NULL);
}

static int send_children(lk_client *c, const char *node, const lk_call *call)
{
  return lk_get_children(c, node, call, on_names, NULL);
}

/* lk_add_watch() needs a callback. */
static void on_nothing(lk_client *c, lk_watch *w, const lk_event *event,
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
  lk_call own = call == NULL ? (lk_call){.size = sizeof own} : *call;

  if (own.on_event == NULL)
    own.on_event = on_nothing;
  return lk_add_watch(c, node, mode, &own, on_ended, NULL);
}

static int send_watch_node(lk_client *c, const char *node, const lk_call *call)
{
  return add_watch(c, node, LK_WATCH_PERSISTENT, call);
}

static int send_watch_tree(lk_client *c, const char *node, const lk_call *call)
{
  return add_watch(c, node, LK_WATCH_RECURSIVE, call);
}

static int send_count(lk_client *c, const char *node, const lk_call *call)
{
  return lk_count_descendants(c, node, call, on_number, NULL);
}

static int send_ephemerals(lk_client *c, const char *node, const lk_call *call)
{
  return lk_ephemerals(c, below(node, "/"), call, on_paths, NULL);
}

static int send_sync(lk_client *c, const char *node, const lk_call *call)
{
  return lk_sync(c, node, call, on_ended, NULL);
}

static int send_multi(lk_client *c, const char *node, const lk_call *call)
{
  const lk_op ops[] = {
      lk_op_check(node, 0),
      lk_op_create(below(node, "/new"), lk_text("x"), NULL, 0),
      lk_op_create2(below(node, "/new/e"), lk_text("x"), NULL, LK_EPHEMERAL),
      lk_op_create(below(node, "/box"), lk_text("x"), NULL, LK_CONTAINER),
      lk_op_create_ttl(below(node, "/n-"), lk_text("x"), NULL, LK_SEQUENTIAL,
                       LK_TTL_MAX_MS),
      lk_op_set(node, lk_text("two"), 0),
      lk_op_check(node, 1),
      lk_op_delete(below(node, "/kid"), 0),
  };

  return lk_multi(c, ops, sizeof ops / sizeof ops[0], call, on_results, NULL);
}

static int send_multi_read(lk_client *c, const char *node, const lk_call *call)
{
  const lk_read reads[] = {lk_read_get(node), lk_read_get_children(node),
                           lk_read_get(below(node, "/none"))};

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

/* clang-format off */
const operation operations[] = {
  {"create", 1, WRITES | CREATES, send_create,
   "/new", ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"create2", 15, WRITES | CREATES, send_create2,
   "/new, Stat", ".=one /kid=x /mine*= /new*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"create2, sequential", 15, WRITES | CREATES | NUMBERED, send_sequential,
   "/n-0000000002, Stat", ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"createContainer", 19, WRITES | CREATES, send_container,
   "/new, Stat", ".=one /kid=x /mine*= /new=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"createTTL", 21, WRITES | CREATES | NUMBERED, send_ttl,
   "/n-0000000002, Stat", ".=one /kid=x /mine*= /n-0000000002=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"delete", 2, WRITES, send_delete,
   "", ".=one /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"exists", 3, 0, send_exists,
   "version 0, list 0, 2 children", UNCHANGED,
   LK_ERR_NO_NODE, 0, LK_EVENT_CHANGED},
  {"getData", 4, 0, send_get,
   "one, version 0", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHANGED},
  {"setData", 5, WRITES, send_set,
   "version 1, list 0, 2 children", ".@1=two /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"getACL", 6, 0, send_get_acl,
   "world:anyone:cdrwa, list 0", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"setACL", 7, WRITES, send_set_acl,
   "version 0, list 1, 2 children", ".#1=one /kid=x /mine*=",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"sync", 9, 0, send_sync,
   "", UNCHANGED,
   0, 0, 0},
  {"getChildren2", 12, 0, send_children,
   "kid mine, 2 children", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, LK_EVENT_CHILDREN},
  {"multi", 14, WRITES, send_multi,
   "ok /new /new/e /box /n-0000000004 version 1 ok ok",
   ".@1=two /box=x /mine*= /n-0000000004=x /new=x /new/e*=x",
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"multiRead", 22, 0, send_multi_read,
   "one, version 0; kid mine; NO_NODE", UNCHANGED,
   0, 0, 0},
  {"getEphemerals", 103, 0, send_ephemerals,
   "/mine", UNCHANGED,
   0, 0, 0},
  {"getAllChildrenNumber", 104, 0, send_count,
   "2", UNCHANGED,
   LK_ERR_NO_NODE, LK_ERR_NO_AUTH, 0},
  {"addWatch", 106, 0, send_watch_node,
   "", UNCHANGED,
   0, 0, LK_EVENT_CHANGED},
  {"addWatch, recursive", 106, 0, send_watch_tree,
   "", UNCHANGED,
   0, 0, LK_EVENT_CHANGED},
  {"whoAmI", 107, NO_PATH, send_who_am_i,
   "ip:127.0.0.1", UNCHANGED,
   0, 0, 0},
  {"config", 4, NO_PATH, send_config,
   "as many servers as there are", UNCHANGED,
   0, 0, 0},
  {"reconfig", 16, NO_PATH | WRITES | ENSEMBLE_ONLY, send_reconfig,
   "as many servers as there are", ".=one /kid=x /mine*= reconfigured",
   0, 0, 0},
};
/* clang-format on */
const size_t noperations = sizeof operations / sizeof operations[0];

size_t operations_in(bool ensemble)
{
  size_t n = noperations;

  while (!ensemble && (operations[n - 1].flags & ENSEMBLE_ONLY) != 0)
    n--;
  return n;
}
