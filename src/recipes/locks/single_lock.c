/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/single.h>

#include "base/mem.h"
#include "recipes/locks/lock.h"
#include "recipes/queue/single_node.h"

enum {
  MAX_POLL_MS = 3600 * 1000,
  MAX_SPREAD_MS = 60 * 1000,
  DEFAULT_SPREAD_MS = 50,
  NO_SPREAD = -1 /* a value of lk_single_config.spread_ms */
};

/* What the acquisitions need in addition to the options of all locks. */
typedef struct single_plan {
  lk_single_node_config node;
  char dir[]; /* the path up to its last slash; "" for the root */
} single_plan;

static bool single_config_is_valid(const lk_single_config *o)
{
  return o->poll_ms >= 0 && o->poll_ms <= MAX_POLL_MS &&
         (o->spread_ms == NO_SPREAD ||
          (o->spread_ms >= 0 && o->spread_ms <= MAX_SPREAD_MS));
}

static int32_t single_max_delay_ms(const lk_single_config *o)
{
  if (o->spread_ms == NO_SPREAD)
    return 0;
  return o->spread_ms == 0 ? DEFAULT_SPREAD_MS : o->spread_ms;
}

static single_plan *single_plan_new(const lk_mem *mem, const char *path,
                                    const lk_single_config *o)
{
  size_t dir_len = (size_t)(strrchr(path, '/') - path);
  single_plan *p = lk__mem_new(mem, sizeof *p + dir_len + 1);

  if (p == NULL)
    return NULL;
  memcpy(p->dir, path, dir_len);
  p->node.poll_ms = o->poll_ms;
  p->node.max_delay_ms = single_max_delay_ms(o);
  return p;
}

static int single_clone(lk_lock **out, const lk_lock *l,
                        const lk_lock_config *config)
{
  const single_plan *p = l->source.plan;
  int32_t max_delay_ms = p->node.max_delay_ms;
  const lk_single_config options = {
      .size = sizeof options,
      .poll_ms = p->node.poll_ms,
      .spread_ms = max_delay_ms == 0 ? NO_SPREAD : max_delay_ms};

  return lk_single_new(out, l->lease->client, lk_lock_path(l), config,
                       &options);
}

static void lock_use_single_plan(lk_lock *l, single_plan *p)
{
  lk_contender_config *config = &l->options.contender;

  l->source.plan = p;
  l->source.clone = single_clone;
  config->dir = p->dir;
  config->machine = &lk__single_node_machine;
  config->machine_config = &p->node;
  config->name = lk_lock_path(l) + strlen(p->dir) + strlen("/");
  config->identity = LK_IDENTITY_NONE;
  config->persistent_parents = true;
}

int lk_single_new(lk_lock **out, lk_client *client, const char *path,
                  const lk_lock_config *config, const lk_single_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_single_config);
  lk_single_config single;
  lk_lock_config common;
  int err = lk__lock_config_copy(client, &common, config);

  *out = NULL;
  if (err == 0)
    err = lk__client_copy_options(client, &sized, &single, options);
  if (err != 0)
    return err;
  /* Layouts name the nodes of queues, and a single node has no queue. So only
   * the default layout is accepted. */
  if (!single_config_is_valid(&single) || common.layout != LK_LAYOUT_CURATOR)
    return LK_ERR_BAD_ARGUMENT;
  err = lk__lock_make(out, client, path, &common, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  single_plan *p =
      single_plan_new(lk_client_mem(client), lk_lock_path(*out), &single);

  if (p == NULL) {
    lk_lock_free(*out);
    *out = NULL;
    return LK_ERR_NO_MEMORY;
  }
  lock_use_single_plan(*out, p);
  return 0;
}
