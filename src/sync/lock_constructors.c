/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_constructors.h"

#include "sync/call_entry.h"
#include "sync/recipe.h"

/* The constructors of locks, except read-write locks: one for each kind. All
   other calls are common to all kinds, since each is an lk_lock. */

enum { MAX_MULTILOCK_MEMBERS = 1000 }; /* as in lk_multilock_new() */

/* ---- checking the options ------------------------------------------------ */

/** A call that has the recipe check the options of `lock`. */
typedef struct check_call {
  lk_blocking_call call;
  const lk_sync_lock *lock;
} check_call;

static void begin_check(lk_blocking_call *b)
{
  lk__blocking_call_complete(
      b, lk__recipe_check_options(LK_OWNER(b, check_call, call)->lock));
}

/* Frees the lock and returns `err`. */
static int destroy_and_return(lk_sync_lock **l, int err)
{
  lk__sync_lock_destroy(*l);
  *l = NULL;
  return err;
}

/* If the thread of the handle has ended (LK_ERR_CLOSED), the options cannot be
   checked. That does no harm, since each acquire will fail. */
int lk__sync_lock_check_or_destroy(lk_sync_lock **l)
{
  check_call check = {.lock = *l};
  bool on_thread_of_handle = lk__sync_refusal((*l)->client) == LK_ERR_STATE;
  int err = on_thread_of_handle
                ? lk__recipe_check_options(*l)
                : lk__blocking_call_do(&check.call, (*l)->client, begin_check);

  return err == 0 || err == LK_ERR_CLOSED ? 0 : destroy_and_return(l, err);
}

/* ---- constructors -------------------------------------------------------- */

int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                     const lk_sync_lock_config *config)
{
  int err = lk__sync_lock_make(out, c, LK_KIND_MUTEX, path, config);

  return err != 0 ? err : lk__sync_lock_check_or_destroy(out);
}

static int copy_limit_path(lk_sync_lock *l)
{
  if (l->semaphore.limit_path == NULL)
    return 0;
  l->limit_path = lk__mem_text(&l->client->mem, l->semaphore.limit_path);
  l->semaphore.limit_path = l->limit_path;
  return l->limit_path == NULL ? LK_ERR_NO_MEMORY : 0;
}

int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                          const char *path, const lk_sync_lock_config *config,
                          const lk_semaphore_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_semaphore_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SEMAPHORE, path, config);

  if (err != 0)
    return err;
  lk_semaphore_config *copy = &(*out)->semaphore;

  err = lk__sync_copy_options(c, &sized, copy, options);
  if (err == 0)
    err = copy_limit_path(*out);
  if (err != 0)
    return destroy_and_return(out, err);
  if (copy->history == NULL) /* the threads share one history */
    copy->history = &(*out)->history;
  return lk__sync_lock_check_or_destroy(out);
}

int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                       const lk_sync_lock_config *config,
                       const lk_single_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_single_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SINGLE, path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &sized, &(*out)->single, options);
  return err != 0 ? destroy_and_return(out, err)
                  : lk__sync_lock_check_or_destroy(out);
}

/* If this fails, `member_count` tells how many paths were copied. */
static int copy_members(lk_sync_lock *l, const lk_multilock_member *members,
                        size_t count)
{
  const lk_mem *mem = &l->client->mem;

  l->members = lk__mem_new(mem, count * sizeof *members);
  if (l->members == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    const lk_multilock_member *from = &members[i];

    if (from->path == NULL)
      return LK_ERR_BAD_PATH;
    const char *path = lk__mem_text(mem, from->path);

    if (path == NULL)
      return LK_ERR_NO_MEMORY;
    l->members[i].side = from->side;
    l->members[i].path = path;
    l->member_count = i + 1;
  }
  return 0;
}

int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                          const lk_multilock_member *members, size_t count,
                          const lk_sync_lock_config *config,
                          const lk_multilock_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_multilock_config);

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (members == NULL || count == 0 || count > MAX_MULTILOCK_MEMBERS)
    return LK_ERR_BAD_ARGUMENT;
  int err =
      lk__sync_lock_make(out, c, LK_KIND_MULTILOCK, members[0].path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &sized, &(*out)->multilock, options);
  if (err == 0)
    err = copy_members(*out, members, count);
  return err != 0 ? destroy_and_return(out, err)
                  : lk__sync_lock_check_or_destroy(out);
}
