/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lock/lock.h"
#include "recipes/multilock/multilock_acquisition.h"

#include <latchkey/multilock.h>

#include <stdlib.h>

enum { MAX_MEMBERS = 1000 };

/* What its attempts are for. The texts stand behind the members. */
typedef struct plan {
  lk_multilock_plan team;
  lk_contender_config members[];
} plan;

/* ---- members ----------------------------------------------------------- */

static int check(const lk_layout_rules *rules,
                 const lk_multilock_member *members, size_t count)
{
  if (rules == NULL || members == NULL || count == 0 || count > MAX_MEMBERS)
    return LK_ERR_BAD_ARGUMENT;
  for (size_t i = 0; i < count; i++) {
    if ((size_t)members[i].side > LK_MULTILOCK_WRITE)
      return LK_ERR_BAD_ARGUMENT;
    if (members[i].path == NULL || lk_path_check(members[i].path) != 0 ||
        strcmp(members[i].path, "/") == 0)
      return LK_ERR_BAD_PATH;
  }
  return 0;
}

/* What has no role yet gets that of the lock's own mutex, see take_plan(). */
static plan *make_plan(const lk_mem *mem, const lk_layout_rules *rules,
                       const lk_multilock_member *members, size_t count)
{
  size_t size = sizeof(plan) + count * sizeof(lk_contender_config);
  size_t texts = 0;

  for (size_t i = 0; i < count; i++)
    texts += strlen(members[i].path) + 1;
  plan *p = lk__take(mem, size + texts);

  if (p == NULL)
    return NULL;
  char *at = (char *)p + size;

  for (size_t i = 0; i < count; i++) {
    size_t len = strlen(members[i].path) + 1;

    memcpy(at, members[i].path, len);
    p->members[i].dir = at;
    p->members[i].role = rules->roles[members[i].side];
    at += len;
  }
  p->team.members = p->members;
  p->team.count = count;
  return p;
}

static int by_path(const void *a, const void *b)
{
  const lk_contender_config *x = a;
  const lk_contender_config *y = b;

  return strcmp(x->dir, y->dir);
}

/* Drop what stands there twice. false: a path with two sides. */
static bool unite(lk_multilock_plan *t)
{
  size_t kept = 0;

  for (size_t i = 0; i < t->count; i++) {
    size_t same = 0;

    while (same < kept && strcmp(t->members[same].dir, t->members[i].dir) != 0)
      same++;
    if (same < kept && t->members[same].role != t->members[i].role)
      return false;
    if (same == kept)
      t->members[kept++] = t->members[i];
  }
  t->count = kept;
  return true;
}

/* ---- life -------------------------------------------------------------- */

static lk_acquisition *make(lk_lock *l, const lk_acquisition_callbacks *who)
{
  plan *p = l->plan;
  lk_multilock_acquisition *m =
      lk__multilock_acquisition_new(l->lease, &p->team, who, l);

  p->team.once = l->options.what.once;
  for (size_t i = 0; i < p->team.count; i++)
    p->members[i].once = p->team.once;
  return m == NULL ? NULL : &m->group.acquisition;
}

static void free_plan(void *p, const lk_mem *mem)
{
  lk__give(mem, p);
}

/* The options of the lock are those of each member. */
static void take_plan(lk_lock *l, plan *p)
{
  l->make = make;
  l->plan = p;
  l->free_plan = free_plan;
  p->team.fail_on_expiry = l->options.what.fail_on_expiry;
  for (size_t i = 0; i < p->team.count; i++) {
    lk_contender_config own = p->members[i];
    bool mutex = own.role == &lk__role_mutex;

    p->members[i] = l->options.what;
    p->members[i].dir = own.dir;
    if (own.role != NULL)
      p->members[i].role = own.role;
    p->members[i].fail_on_expiry = true; /* then the whole begins anew */
    p->members[i].peek = false;
    if (!mutex)
      p->members[i].announcement = lk_text(NULL);
  }
}

int lk_multilock_new(lk_lock **out, lk_client *client,
                     const lk_multilock_member *members, size_t count,
                     const lk_lock_config *config,
                     const lk_multilock_config *options)
{
  static const lk_sized what = LK_SIZED(lk_multilock_config);
  lk_multilock_config several;
  lk_lock_config own;
  int err = lk__lock_config_take(client, &own, config);

  *out = NULL;
  if (err == 0)
    err = lk__sized_take(client, &what, &several, options);
  if (err != 0)
    return err;
  const lk_layout_rules *rules = lk__layout_rules(own.layout);

  err = check(rules, members, count);
  if (err != 0)
    return err;
  plan *p = make_plan(lk_client_mem(client), rules, members, count);

  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  if (!several.keep_order)
    qsort(p->members, count, sizeof *p->members, by_path);
  err = unite(&p->team) ? 0 : LK_ERR_BAD_ARGUMENT;
  if (err == 0)
    err =
        lk__lock_make(out, client, p->members[0].dir, &own, LK_MULTILOCK_MUTEX);
  if (err != 0)
    lk__give(lk_client_mem(client), p);
  else
    take_plan(*out, p);
  return err;
}

/* ---- facts of one member ----------------------------------------------- */

/* The contender for the member at `path`; NULL: there is none. */
static const lk_contender *find_member(const lk_lock *l, const char *path)
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
  const lk_contender *ct = lk__lock_holds(l) ? find_member(l, path) : NULL;

  return ct == NULL ? 0 : lk__contender_token(ct);
}

const char *lk_multilock_node(const lk_lock *l, const char *path)
{
  const lk_contender *ct = find_member(l, path);

  return ct != NULL && ct->own.state == LK_OWN_CREATED ? ct->own.path : NULL;
}
