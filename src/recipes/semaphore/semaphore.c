/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock.h"
#include "recipes/semaphore/permit_nodes.h"
#include "recipes/semaphore/semaphore_acquisition.h"

#include <latchkey/semaphore.h>

#include <stdio.h>

enum { MAX_PERMITS = 1000000, MAX_TAKE = 1000 };

/* What all acquisitions of one handle share, with the memory it refers to. */
typedef struct semaphore_plan {
  lk_semaphore_plan base;
  lk_semaphore_history own_history; /* used if the caller gives no history */
  char limit_digits[12];            /* kazoo's layout: the limit in decimal */
  char paths[];                     /* of queue, permits and limit */
} semaphore_plan;

static lk_acquisition *
semaphore_acquisition_make(lk_lock *l,
                           const lk_acquisition_callbacks *callbacks)
{
  semaphore_plan *p = l->source.plan;

  p->base.queue_node.once = l->options.contender.once;
  p->base.counting.once = l->options.contender.once;
  lk_semaphore_acquisition *acquisition =
      lk__semaphore_acquisition_new(l->lease, &p->base, callbacks, l);

  return acquisition == NULL ? NULL : &acquisition->joint.acquisition;
}

static void semaphore_plan_free(void *p, const lk_mem *mem)
{
  lk__mem_free(mem, p);
}

/* Only Curator's layout has a `limit_path`. With it the number of permits may
 * grow, so `take` may exceed it. */
static bool semaphore_config_is_valid(const lk_semaphore_config *o,
                                      lk_layout layout)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);

  return rules != NULL && rules->permit != NULL && o->permits >= 1 &&
         o->permits <= MAX_PERMITS && o->take >= 0 && o->take <= MAX_TAKE &&
         (o->limit_path != NULL ? layout == LK_LAYOUT_CURATOR
                                : o->take <= o->permits);
}

/* Write `dir` followed by `name` at `*at`, and advance `*at`. */
static const char *semaphore_plan_put_path(char **at, const char *dir,
                                           const char *name)
{
  char *path = *at;

  *at += sprintf(path, "%s%s", dir, name) + 1;
  return path;
}

/* In Curator's layout, queue and permits have directories below `path`. */
static void semaphore_plan_set_curator(semaphore_plan *p, const char *path,
                                       const char *limit)
{
  char *at = p->paths;

  p->base.queue_node.dir = semaphore_plan_put_path(&at, path, "/locks");
  p->base.permit.dir = semaphore_plan_put_path(&at, path, "/leases");
  if (limit != NULL)
    p->base.limit_path = semaphore_plan_put_path(&at, limit, "");
}

/* In kazoo's layout the permits are children of `path`, and the directory of
 * the queue is a sibling of `path`. */
static void semaphore_plan_set_kazoo(semaphore_plan *p, const char *path)
{
  char *at = p->paths;

  p->base.queue_node.dir = semaphore_plan_put_path(&at, path, "-__lock__");
  p->base.permit.dir = semaphore_plan_put_path(&at, path, "");
  p->base.limit_path = p->base.permit.dir;
  snprintf(p->limit_digits, sizeof p->limit_digits, "%d", (int)p->base.limit);
  p->base.limit_text = lk_text(p->limit_digits);
}

static semaphore_plan *semaphore_plan_new(const lk_mem *mem, const char *path,
                                          lk_layout layout,
                                          const lk_semaphore_config *o)
{
  size_t limit_path_size =
      o->limit_path == NULL ? 0 : strlen(o->limit_path) + 1;
  size_t queue_path_size = strlen(path) + sizeof "-__lock__";
  size_t permits_path_size = strlen(path) + sizeof "/leases";
  semaphore_plan *p = lk__mem_new(mem, sizeof *p + queue_path_size +
                                           permits_path_size + limit_path_size);

  if (p == NULL)
    return NULL;
  p->base.take = o->take == 0 ? 1 : (size_t)o->take;
  p->base.limit = o->permits;
  lk_semaphore_history *history =
      o->history == NULL ? &p->own_history : o->history;

  p->base.wasted_writes = &history->failures;
  if (layout == LK_LAYOUT_KAZOO)
    semaphore_plan_set_kazoo(p, path);
  else
    semaphore_plan_set_curator(p, path, o->limit_path);
  return p;
}

static lk_contender_config semaphore_contender_config(const lk_lock *l,
                                                      const lk_role *role,
                                                      const char *dir)
{
  lk_contender_config c = l->options.contender;

  c.role = role;
  c.dir = dir;
  /* A contender ends with its session. Then the acquisition begins again as a
   * whole, unless the caller's fail_on_expiry is set. */
  c.fail_on_expiry = true;
  c.peek = false; /* queue and permit nodes are created in one write */
  c.announcement = (lk_bytes){0}; /* none */
  if (role->is_permit)
    c.max_queue = 0; /* the option is for the queue node */
  return c;
}

static void semaphore_use_plan(lk_lock *l, semaphore_plan *p)
{
  lk_semaphore_plan *plan = &p->base;

  l->not_reentrant = true;
  l->source.make = semaphore_acquisition_make;
  l->source.plan = p;
  l->source.free_plan = semaphore_plan_free;
  plan->fail_on_expiry = l->options.contender.fail_on_expiry;
  plan->queue_node = semaphore_contender_config(l, l->options.contender.role,
                                                plan->queue_node.dir);
  /* The permit nodes are created later, and their creates prove the lease. */
  plan->queue_node.needs_no_lease = true;
  plan->permit =
      semaphore_contender_config(l, l->options.rules->permit, plan->permit.dir);
  plan->permit.identity = l->options.rules->permit_identity;
  plan->permit.dir_data = plan->limit_text;
  plan->permit.find_position = lk__permit_nodes_find_position;
  plan->counting = plan->permit;
  plan->counting.limit = &plan->limit;
}

int lk_semaphore_new(lk_lock **out, lk_client *client, const char *path,
                     const lk_lock_config *config,
                     const lk_semaphore_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_semaphore_config);
  lk_semaphore_config permits;
  lk_lock_config lock_config;
  int err = lk__lock_config_copy(client, &lock_config, config);

  *out = NULL;
  if (err == 0)
    err = lk__config_copy(client, &sized, &permits, options);
  if (err != 0)
    return err;
  if (!semaphore_config_is_valid(&permits, lock_config.layout))
    return LK_ERR_BAD_ARGUMENT;
  if (permits.limit_path != NULL && lk_path_check(permits.limit_path) != 0)
    return LK_ERR_BAD_PATH;
  err = lk__lock_make(out, client, path, &lock_config, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  semaphore_plan *p = semaphore_plan_new(lk_client_mem(client), path,
                                         lock_config.layout, &permits);

  if (p == NULL) {
    lk_lock_free(*out);
    *out = NULL;
    return LK_ERR_NO_MEMORY;
  }
  semaphore_use_plan(*out, p);
  return 0;
}
