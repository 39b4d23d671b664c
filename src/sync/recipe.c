/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/recipe.h"

#include "sync/rwlock_side.h"

/* The lk_lock of a thread, made by the recipe that the lock is of. */

static int recipe_new(const lk_sync_lock *l, lk_lock **out,
                      const lk_lock_config *how)
{
  lk_client *c = l->client->client;

  switch (l->kind) {
  case LK_KIND_MUTEX: return lk_lock_new(out, c, l->path, how);
  case LK_KIND_SEMAPHORE:
    return lk_semaphore_new(out, c, l->path, how, &l->semaphore);
  case LK_KIND_MULTILOCK:
    return lk_multilock_new(out, c, l->members, l->count, how, &l->multilock);
  case LK_KIND_SINGLE: return lk_single_new(out, c, l->path, how, &l->single);
  case LK_KIND_READ:
  case LK_KIND_WRITE: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

int lk__recipe_make(lk_lock_owner *h)
{
  const lk_sync_lock *l = atomic_load(&h->lock);
  lk_lock_config how = l->config;

  if (l->partner != NULL)
    return lk__rwlock_side_make(h);
  how.on_event = lk__lock_owner_on_event;
  how.arg = h;
  return recipe_new(l, &h->recipe, &how);
}

void lk__recipe_free(lk_lock_owner *h)
{
  lk_lock *recipe = h->recipe;

  h->recipe = NULL;
  if (h->pair != NULL)
    lk__rwlock_side_free(h, recipe);
  else
    lk_lock_free(recipe);
}

int lk__recipe_try(const lk_sync_lock *l)
{
  lk_rwlock *rw = NULL;
  lk_lock *plain = NULL;
  lk_lock_config how = l->config;
  bool side = l->kind == LK_KIND_READ || l->kind == LK_KIND_WRITE;
  int err = side ? lk_rwlock_new(&rw, l->client->client, l->path, &how)
                 : recipe_new(l, &plain, &how);

  lk_rwlock_free(rw);
  lk_lock_free(plain);
  return err;
}
