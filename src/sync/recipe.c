/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/recipe.h"

#include "sync/rwlock_side.h"

/* Each thread that uses a lock has an lk_lock of its own. The functions here
   make it, with the recipe of the lock's kind. */

static int recipe_new(const lk_sync_lock *l, lk_lock **out,
                      const lk_lock_config *config)
{
  lk_client *c = l->client->client;

  switch (l->kind) {
  case LK_KIND_MUTEX: return lk_lock_new(out, c, l->path, config);
  case LK_KIND_SEMAPHORE:
    return lk_semaphore_new(out, c, l->path, config, &l->semaphore);
  case LK_KIND_MULTILOCK:
    return lk_multilock_new(out, c, l->members, l->member_count, config,
                            &l->multilock);
  case LK_KIND_SINGLE:
    return lk_single_new(out, c, l->path, config, &l->single);
  case LK_KIND_READ: /* the sides of a read-write lock: rwlock_side.c */
  case LK_KIND_WRITE: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

int lk__recipe_make(lk_lock_owner *owner)
{
  const lk_sync_lock *l = atomic_load(&owner->lock);
  lk_lock_config config = l->config;

  bool is_side = l->partner != NULL; /* of a read-write lock */

  if (is_side)
    return lk__rwlock_side_make(owner);
  config.on_event = lk__lock_owner_on_event;
  config.arg = owner;
  return recipe_new(l, &owner->recipe, &config);
}

void lk__recipe_free(lk_lock_owner *owner)
{
  lk_lock *recipe = owner->recipe;

  owner->recipe = NULL;
  if (owner->thread_rwlock != NULL)
    lk__rwlock_side_free(owner, recipe);
  else
    lk_lock_free(recipe);
}

int lk__recipe_check_options(const lk_sync_lock *l)
{
  lk_rwlock *rw = NULL;
  lk_lock *lock = NULL;
  bool is_side = l->kind == LK_KIND_READ || l->kind == LK_KIND_WRITE;
  int err = is_side ? lk_rwlock_new(&rw, l->client->client, l->path, &l->config)
                    : recipe_new(l, &lock, &l->config);

  lk_rwlock_free(rw);
  lk_lock_free(lock);
  return err;
}
