/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/recipe.h"

#include "sync/rwlock_side.h"

/* Each thread that uses a lock has an lk_lock of its own, and so has each
   candidate. The functions here make it, with the recipe of the lock's kind. */

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

int lk__recipe_lock_new(lk_recipe_lock *out, const lk_sync_lock *l,
                        const lk_lock_config *config)
{
  bool is_side = l->kind == LK_KIND_READ || l->kind == LK_KIND_WRITE;

  *out = (lk_recipe_lock){.lock = NULL};
  if (!is_side)
    return recipe_new(l, &out->lock, config);
  int err = lk_rwlock_new(&out->rw, l->client->client, l->path, config);

  if (err == 0)
    out->lock = l->kind == LK_KIND_READ ? lk_rwlock_read_side(out->rw)
                                        : lk_rwlock_write_side(out->rw);
  return err;
}

void lk__recipe_lock_free(lk_recipe_lock *lock)
{
  if (lock->rw != NULL)
    lk_rwlock_free(lock->rw);
  else
    lk_lock_free(lock->lock);
  *lock = (lk_recipe_lock){.lock = NULL};
}

int lk__recipe_check_options(const lk_sync_lock *l)
{
  lk_recipe_lock lock;
  int err = lk__recipe_lock_new(&lock, l, &l->config);

  lk__recipe_lock_free(&lock);
  return err;
}
