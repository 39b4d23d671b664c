/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock.h"
#include "recipes/multilock/multilock_acquisition.h"

#include <latchkey/multilock.h>

#include <stdlib.h>

enum { MAX_MEMBERS = 1000 };

/* What all acquisitions of one handle share. The paths of the members follow in
 * the same allocation. */
typedef struct multilock_plan {
  lk_multilock_plan base;
  lk_contender_config members[];
} multilock_plan;

/* ---- members ----------------------------------------------------------- */

static bool side_is_valid(lk_multilock_side side)
{
  return side == LK_MULTILOCK_MUTEX || side == LK_MULTILOCK_READ ||
         side == LK_MULTILOCK_WRITE;
}

static int multilock_check_members(const lk_layout_rules *rules,
                                   const lk_multilock_member *members,
                                   size_t count)
{
  if (rules == NULL || members == NULL || count == 0 || count > MAX_MEMBERS)
    return LK_ERR_BAD_ARGUMENT;
  for (size_t i = 0; i < count; i++) {
    if (!side_is_valid(members[i].side) ||
        !lk__layout_has_side(rules, members[i].side))
      return LK_ERR_BAD_ARGUMENT;
    if (members[i].path == NULL || lk_path_check(members[i].path) != 0 ||
        strcmp(members[i].path, "/") == 0)
      return LK_ERR_BAD_PATH;
  }
  return 0;
}

/* NULL: no memory. A role that is NULL in `rules` is replaced by the role of
 * the lock in multilock_use_plan(). */
static multilock_plan *multilock_plan_new(const lk_mem *mem,
                                          const lk_layout_rules *rules,
                                          const lk_multilock_member *members,
                                          size_t count)
{
  size_t size = sizeof(multilock_plan) + count * sizeof(lk_contender_config);
  size_t paths_size = 0;

  for (size_t i = 0; i < count; i++)
    paths_size += strlen(members[i].path) + 1;
  multilock_plan *p = lk__mem_new(mem, size + paths_size);

  if (p == NULL)
    return NULL;
  char *at = (char *)p + size;

  for (size_t i = 0; i < count; i++) {
    size_t path_size = strlen(members[i].path) + 1;

    memcpy(at, members[i].path, path_size);
    p->members[i].dir = at;
    p->members[i].role = rules->roles[members[i].side];
    at += path_size;
  }
  p->base.members = p->members;
  p->base.count = count;
  return p;
}

static int multilock_compare_paths(const void *a, const void *b)
{
  const lk_contender_config *x = a;
  const lk_contender_config *y = b;

  return strcmp(x->dir, y->dir);
}

/* The member with the path `dir` among the first `count` members, or NULL. */
static const lk_contender_config *
multilock_find_member(const lk_multilock_plan *plan, size_t count,
                      const char *dir)
{
  for (size_t i = 0; i < count; i++) {
    if (strcmp(plan->members[i].dir, dir) == 0)
      return &plan->members[i];
  }
  return NULL;
}

/* Remove duplicate members. false: a path has two different sides. */
static bool multilock_remove_duplicates(lk_multilock_plan *plan)
{
  size_t kept = 0;

  for (size_t i = 0; i < plan->count; i++) {
    const lk_contender_config *same_path =
        multilock_find_member(plan, kept, plan->members[i].dir);

    if (same_path == NULL)
      plan->members[kept++] = plan->members[i];
    else if (same_path->role != plan->members[i].role)
      return false;
  }
  plan->count = kept;
  return true;
}

/* ---- life -------------------------------------------------------------- */

static lk_acquisition *
multilock_acquisition_make(lk_lock *l,
                           const lk_acquisition_callbacks *callbacks)
{
  multilock_plan *p = l->source.plan;

  p->base.once = l->options.contender.once;
  for (size_t i = 0; i < p->base.count; i++)
    p->members[i].once = p->base.once;
  lk_multilock_acquisition *m =
      lk__multilock_acquisition_new(l->lease, &p->base, callbacks, l);

  return m == NULL ? NULL : &m->joint.acquisition;
}

static void multilock_plan_free(void *p, const lk_mem *mem)
{
  lk__mem_free(mem, p);
}

/* Each member gets the options of the lock, except its path and its role. */
static void multilock_use_plan(lk_lock *l, multilock_plan *p)
{
  l->source.make = multilock_acquisition_make;
  l->source.plan = p;
  l->source.free_plan = multilock_plan_free;
  p->base.fail_on_expiry = l->options.contender.fail_on_expiry;
  for (size_t i = 0; i < p->base.count; i++) {
    const char *dir = p->members[i].dir;
    const lk_role *role = p->members[i].role;
    bool may_announce = role == &lk__role_mutex;

    p->members[i] = l->options.contender;
    p->members[i].dir = dir;
    if (role != NULL)
      p->members[i].role = role;
    /* A contender ends with its session. Then the acquisition begins again as a
     * whole, unless the caller's fail_on_expiry is set. */
    p->members[i].fail_on_expiry = true;
    p->members[i].peek = false; /* a transaction creates the nodes first */
    if (!may_announce)
      p->members[i].announcement = (lk_bytes){0};
  }
}

int lk_multilock_new(lk_lock **out, lk_client *client,
                     const lk_multilock_member *members, size_t count,
                     const lk_lock_config *config,
                     const lk_multilock_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_multilock_config);
  lk_multilock_config multilock_config;
  lk_lock_config lock_config;
  int err = lk__lock_config_copy(client, &lock_config, config);

  *out = NULL;
  if (err == 0)
    err = lk__config_copy(client, &sized, &multilock_config, options);
  if (err != 0)
    return err;
  const lk_layout_rules *rules = lk__layout_rules(lock_config.layout);

  err = multilock_check_members(rules, members, count);
  if (err != 0)
    return err;
  multilock_plan *p =
      multilock_plan_new(lk_client_mem(client), rules, members, count);

  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  if (!multilock_config.keep_order)
    qsort(p->members, count, sizeof *p->members, multilock_compare_paths);
  err = multilock_remove_duplicates(&p->base) ? 0 : LK_ERR_BAD_ARGUMENT;
  /* The handle has the path of the first member. */
  if (err == 0)
    err = lk__lock_make(out, client, p->members[0].dir, &lock_config,
                        LK_MULTILOCK_MUTEX);
  if (err != 0)
    lk__mem_free(lk_client_mem(client), p);
  else
    multilock_use_plan(*out, p);
  return err;
}

/* ---- queries ----------------------------------------------------------- */

/* The contender for the member at `path`, or NULL. */
static const lk_contender *multilock_find_contender(const lk_lock *l,
                                                    const char *path)
{
  const lk_acquisition *a = l->acquisition;

  for (size_t i = 0; a != NULL && i < a->count; i++) {
    if (strcmp(a->parts[i]->own.dir, path) == 0)
      return a->parts[i];
  }
  return NULL;
}

uint64_t lk_multilock_token(const lk_lock *l, const char *path)
{
  const lk_contender *ct = lk__lock_holds(l) && !lk__lock_is_forked(l)
                               ? multilock_find_contender(l, path)
                               : NULL;

  return ct == NULL ? 0 : lk__contender_token(ct);
}

const char *lk_multilock_node(const lk_lock *l, const char *path)
{
  const lk_contender *ct =
      lk__lock_is_forked(l) ? NULL : multilock_find_contender(l, path);

  return ct != NULL && ct->own.state == LK_OWN_CREATED ? ct->own.path : NULL;
}
