/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "recipes/common/deadline.h"
#include "recipes/common/memory.h"

#include <latchkey/nodes.h>

/**
 * @file
 * A node with its parents: it is asked for as if they were there, and once
 * more behind them if they are not.
 */

enum { MAX_ROUNDS = 10 };

typedef struct deep {
  lk_client *client;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  lk_acls *parent_acl;
  int flags;
  int parent_flags;
  int64_t end_ms;
  lk_create_cb done;
  void *arg;
  unsigned rounds; /* of parents */
  size_t open;     /* requests under way */
  int refused;     /* why one could not be made */
  int parent_err;  /* why the last one that is not there is not, or 0 */
  bool rootless;   /* not even the first can be there */
} deep;

static void give_back(deep *d)
{
  const lk_mem *mem = lk_client_mem(d->client);

  lk__give(mem, d->acl);
  lk__give(mem, d->parent_acl);
  lk__give(mem, d);
}

static void end(deep *d, int err, const char *path, const lk_stat *stat)
{
  lk_client *c = d->client;
  lk_create_cb done = d->done;
  void *arg = d->arg;

  give_back(d);
  if (done != NULL)
    done(c, err, path, stat, arg);
}

/* ---- asking ------------------------------------------------------------ */

static void on_node(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg);

static int ask_node(deep *d)
{
  lk_call call = lk__call_until(d->end_ms);
  int err = lk_create2(d->client, d->path, d->data, d->acl, d->flags, &call,
                       on_node, d);

  d->open += err == 0;
  return err;
}

/* Whether one of them exists does not matter, and who may not create it is
 * told so before it is looked whether it does: the create that follows
 * decides. */
static void on_parent(lk_client *c, int err, const char *path,
                      const lk_stat *stat, void *arg)
{
  deep *d = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (d->parent_err == LK_ERR_UNIMPLEMENTED)
    err = d->parent_err; /* the server hangs up behind this one */
  if (err == 0 || err == LK_ERR_NODE_EXISTS)
    d->parent_err = 0;
  else if (err != LK_ERR_NO_NODE)
    d->parent_err = err;
  if (--d->open == 0)
    end(d, d->refused, NULL, NULL);
}

static void on_first_parent(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg)
{
  deep *d = arg;

  d->rootless = err == LK_ERR_NO_NODE;
  on_parent(c, err, path, stat, arg);
}

static int ask_parent(deep *d, bool first)
{
  lk_call call = lk__call_until(d->end_ms);
  int err =
      lk_create(d->client, d->path, lk_bytes_of("", 0), d->parent_acl,
                d->parent_flags, &call, first ? on_first_parent : on_parent, d);

  d->open += err == 0;
  return err;
}

/* All leave in one write, the node behind them. */
static int ask_all(deep *d)
{
  int err = 0;

  for (char *s = strchr(d->path + 1, '/'); s != NULL && err == 0;
       s = strchr(s + 1, '/')) {
    *s = '\0';
    err = ask_parent(d, strchr(d->path + 1, '/') == NULL);
    *s = '/';
  }
  return err != 0 ? err : ask_node(d);
}

/* ---- answers ----------------------------------------------------------- */

static bool has_parents(const deep *d)
{
  return strchr(d->path + 1, '/') != NULL;
}

/* 0: the parents may be missing, or were swept away just now; else why not to
 * go on. */
static int hindrance(const deep *d)
{
  if (d->parent_err != 0)
    return d->parent_err;
  return has_parents(d) && !d->rootless && d->rounds < MAX_ROUNDS
             ? 0
             : LK_ERR_NO_NODE;
}

static void go_on(deep *d)
{
  d->rounds++;
  d->refused = ask_all(d);
  if (d->open == 0)
    end(d, d->refused, NULL, NULL);
}

/* The last of its round, but for deadlines. */
static void on_node(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  deep *d = arg;
  bool again = err == LK_ERR_NO_NODE;

  (void)c;
  d->open--;
  if (again)
    err = hindrance(d);
  else if (err != 0 && d->parent_err == LK_ERR_UNIMPLEMENTED)
    err = d->parent_err;
  if (d->open > 0)
    d->refused = err;
  else if (again && err == 0)
    go_on(d);
  else
    end(d, err, path, stat);
}

/* ---- beginning --------------------------------------------------------- */

static lk_acls *copy_acl(const lk_mem *mem, const lk_acls *acl, bool *whole)
{
  lk_acls *copy = acl == NULL ? NULL : lk__acls_copy(mem, acl);

  *whole = *whole && (copy != NULL || acl == NULL);
  return copy;
}

/* Path and data stand behind it. */
static deep *new_deep(lk_client *c, const char *path, lk_bytes data,
                      const lk_acls *acl, const lk_acls *parent_acl)
{
  const lk_mem *mem = lk_client_mem(c);
  size_t path_size = strlen(path) + 1;
  bool whole = true;

  if (data.len > SIZE_MAX - sizeof(deep) - path_size)
    return NULL;
  deep *d = lk__take(mem, sizeof *d + path_size + data.len);

  if (d == NULL)
    return NULL;
  d->client = c;
  d->path = (char *)(d + 1);
  memcpy(d->path, path, path_size);
  d->data = data;
  if (data.at != NULL)
    d->data.at = d->path + path_size;
  if (data.len > 0)
    memcpy(d->path + path_size, data.at, data.len);
  d->acl = copy_acl(mem, acl, &whole);
  d->parent_acl = copy_acl(mem, parent_acl, &whole);
  if (whole)
    return d;
  give_back(d);
  return NULL;
}

int lk_create_with_parents(lk_client *c, const char *path, lk_bytes data,
                           const lk_acls *acl, int flags,
                           const lk_parents_config *parents,
                           const lk_call *call, lk_create_cb done, void *arg)
{
  static const lk_sized what = LK_SIZED(lk_parents_config);
  lk_parents_config above;
  lk_call own;
  int err = lk__call_options_take(c, &own, call);

  if (err == 0)
    err = lk__sized_take(c, &what, &above, parents);
  if (err != 0 || own.repeat)
    return LK_ERR_BAD_ARGUMENT;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  deep *d = new_deep(c, path, data, acl, above.acl);

  if (d == NULL)
    return LK_ERR_NO_MEMORY;
  d->flags = flags;
  d->parent_flags = above.containers ? LK_CONTAINER : LK_PERSISTENT;
  d->end_ms = lk__call_deadline(c, &own);
  d->done = done;
  d->arg = arg;
  err = ask_node(d);

  if (err != 0)
    give_back(d);
  return err;
}
