/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lock.h"
#include "recipes/memory.h"
#include "recipes/permits.h"

#include <latchkey/semaphore.h>

#include <stdio.h>

enum { MAX_PERMITS = 1000000, MAX_TAKE = 1000 };

/* What its attempts are for. The paths stand behind it. */
typedef struct plan {
  lk_permits_config what;
  char paths[];
} plan;

static lk_attempt *make(lk_lock *l, const lk_owner *who)
{
  plan *p = l->plan;
  lk_permits *attempt = lk__permits_new(l->keeper, &p->what, who, l);

  p->what.place.once = l->options.what.once;
  p->what.count.once = l->options.what.once;
  return attempt == NULL ? NULL : &attempt->attempt;
}

static void free_plan(void *p, const lk_mem *mem)
{
  lk__give(mem, p);
}

static bool acceptable(const lk_semaphore_config *o)
{
  return o != NULL && o->size == sizeof *o && o->permits >= 1 &&
         o->permits <= MAX_PERMITS && o->take >= 0 && o->take <= MAX_TAKE &&
         (o->limit_path != NULL || o->take <= o->permits);
}

/* Put `dir`/`name` at `*at` and move on. */
static const char *put(char **at, const char *dir, const char *name)
{
  char *path = *at;

  *at += sprintf(path, "%s%s", dir, name) + 1;
  return path;
}

static plan *make_plan(const lk_mem *mem, const char *path,
                       const lk_semaphore_config *o)
{
  const char *limit = o->limit_path == NULL ? "" : o->limit_path;
  size_t room =
      2 * strlen(path) + strlen(limit) + sizeof "/locks" + sizeof "/leases" + 1;
  plan *p = lk__take(mem, sizeof *p + room);

  if (p == NULL)
    return NULL;
  char *at = p->paths;

  p->what.place.dir = put(&at, path, "/locks");
  p->what.permit.dir = put(&at, path, "/leases");
  if (o->limit_path != NULL)
    p->what.limit_path = put(&at, limit, "");
  p->what.take = o->take == 0 ? 1 : (size_t)o->take;
  p->what.limit = o->permits;
  return p;
}

static lk_contend_config part(const lk_lock *l, const lk_role *role,
                              const char *dir)
{
  lk_contend_config c = l->options.what;

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
  lk_permits_config *w = &p->what;

  l->once = true;
  l->make = make;
  l->plan = p;
  l->free_plan = free_plan;
  w->fail_on_expiry = l->options.what.fail_on_expiry;
  w->place = part(l, &lk__role_mutex, w->place.dir);
  w->place.passing = true; /* the create of the permits is a commit */
  w->permit = part(l, &lk__role_lease, w->permit.dir);
  w->count = w->permit;
  w->count.limit = &w->limit;
}

int lk_semaphore_new(lk_lock **out, lk_keeper *k, const char *path,
                     const lk_lock_config *config,
                     const lk_semaphore_config *options)
{
  *out = NULL;
  if (!acceptable(options) ||
      (config != NULL && config->layout != LK_LAYOUT_CURATOR))
    return LK_ERR_BAD_ARGUMENT;
  if (options->limit_path != NULL && lk_path_check(options->limit_path) != 0)
    return LK_ERR_BAD_PATH;
  int err = lk__lock_make(out, k, path, config, LK_MULTILOCK_MUTEX);

  if (err != 0)
    return err;
  plan *p = make_plan(&k->mem, path, options);

  if (p == NULL) {
    lk_lock_free(*out);
    *out = NULL;
    return LK_ERR_NO_MEMORY;
  }
  take_plan(*out, p);
  return 0;
}
