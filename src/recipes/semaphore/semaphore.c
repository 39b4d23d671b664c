/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lock/lock.h"
#include "recipes/semaphore/semaphore_acquisition.h"

#include <latchkey/semaphore.h>

#include <stdio.h>

enum { MAX_PERMITS = 1000000, MAX_TAKE = 1000 };

/* What its attempts are for. The paths stand behind it. */
typedef struct plan {
  lk_semaphore_plan what;
  lk_semaphore_history memory; /* where it has one of its own */
  char text[12];               /* how many, in decimal */
  char paths[];
} plan;

static lk_acquisition *make(lk_lock *l, const lk_acquisition_callbacks *who)
{
  plan *p = l->plan;
  lk_semaphore_acquisition *attempt =
      lk__semaphore_acquisition_new(l->lease, &p->what, who, l);

  p->what.queue_node.once = l->options.what.once;
  p->what.counting.once = l->options.what.once;
  return attempt == NULL ? NULL : &attempt->group.acquisition;
}

static void free_plan(void *p, const lk_mem *mem)
{
  lk__give(mem, p);
}

static bool acceptable(const lk_semaphore_config *o, lk_layout layout)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);

  return rules != NULL && rules->lease != NULL && o->permits >= 1 &&
         o->permits <= MAX_PERMITS && o->take >= 0 && o->take <= MAX_TAKE &&
         (o->limit_path != NULL ? layout == LK_LAYOUT_CURATOR
                                : o->take <= o->permits);
}

/* Put `dir`/`name` at `*at` and move on. */
static const char *put(char **at, const char *dir, const char *name)
{
  char *path = *at;

  *at += sprintf(path, "%s%s", dir, name) + 1;
  return path;
}

/* Queue and permits of Curator's stand below the path. */
static void lay_out_curator(plan *p, const char *path, const char *limit)
{
  char *at = p->paths;

  p->what.queue_node.dir = put(&at, path, "/locks");
  p->what.permit.dir = put(&at, path, "/leases");
  if (limit != NULL)
    p->what.limit_path = put(&at, limit, "");
}

/* kazoo's permits stand in it, and the queue beside it. */
static void lay_out_kazoo(plan *p, const char *path)
{
  char *at = p->paths;

  p->what.queue_node.dir = put(&at, path, "-__lock__");
  p->what.permit.dir = put(&at, path, "");
  p->what.limit_path = p->what.permit.dir;
  snprintf(p->text, sizeof p->text, "%d", (int)p->what.limit);
  p->what.limit_text = lk_text(p->text);
}

static plan *make_plan(const lk_mem *mem, const char *path, lk_layout layout,
                       const lk_semaphore_config *o)
{
  size_t limit_len = o->limit_path == NULL ? 0 : strlen(o->limit_path);
  size_t room =
      2 * strlen(path) + limit_len + sizeof "-__lock__" + sizeof "/leases" + 1;
  plan *p = lk__take(mem, sizeof *p + room);

  if (p == NULL)
    return NULL;
  p->what.take = o->take == 0 ? 1 : (size_t)o->take;
  p->what.limit = o->permits;
  p->what.failures = &(o->memory == NULL ? &p->memory : o->memory)->failures;
  if (layout == LK_LAYOUT_KAZOO)
    lay_out_kazoo(p, path);
  else
    lay_out_curator(p, path, o->limit_path);
  return p;
}

static lk_contender_config part(const lk_lock *l, const lk_role *role,
                                const char *dir)
{
  lk_contender_config c = l->options.what;

  c.role = role;
  c.dir = dir;
  c.fail_on_expiry = true; /* then the whole begins anew */
  c.peek = false;
  c.announcement = lk_text(NULL);
  if (role->counts)
    c.max_queue = 0;
  return c;
}

static void take_plan(lk_lock *l, plan *p)
{
  lk_semaphore_plan *w = &p->what;

  l->once = true;
  l->make = make;
  l->plan = p;
  l->free_plan = free_plan;
  w->fail_on_expiry = l->options.what.fail_on_expiry;
  w->queue_node = part(l, l->options.what.role, w->queue_node.dir);
  w->queue_node.passing = true; /* the create of the permits is a commit */
  w->permit = part(l, l->options.rules->lease, w->permit.dir);
  w->permit.identity = l->options.rules->permit_identity;
  w->permit.dir_data = w->limit_text;
  w->counting = w->permit;
  w->counting.limit = &w->limit;
}

int lk_semaphore_new(lk_lock **out, lk_client *client, const char *path,
                     const lk_lock_config *config,
                     const lk_semaphore_config *options)
{
  static const lk_sized what = LK_SIZED(lk_semaphore_config);
  lk_semaphore_config permits;
  lk_lock_config own;
  int err = lk__lock_config_take(client, &own, config);

  *out = NULL;
  if (err == 0)
    err = lk__sized_take(client, &what, &permits, options);
  if (err != 0)
    return err;
  if (!acceptable(&permits, own.layout))
    return LK_ERR_BAD_ARGUMENT;
  if (permits.limit_path != NULL && lk_path_check(permits.limit_path) != 0)
    return LK_ERR_BAD_PATH;
  err = lk__lock_make(out, client, path, &own, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  plan *p = make_plan(lk_client_mem(client), path, own.layout, &permits);

  if (p == NULL) {
    lk_lock_free(*out);
    *out = NULL;
    return LK_ERR_NO_MEMORY;
  }
  take_plan(*out, p);
  return 0;
}
