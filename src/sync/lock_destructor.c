/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_destructor.h"

#include "sync/call_entry.h"
#include "sync/recipe.h"

/** A call that ends the use of `lock` by all threads. */
typedef struct lock_end {
  lk_blocking_call call;
  lk_sync_lock *lock;
} lock_end;

static void begin_lock_end(lk_blocking_call *e)
{
  lock_end *f = LK_OWNER(e, lock_end, call);
  lk_safe_iterator it;

  f->lock->freed = true;
  lk__safe_iterator_begin(&it, &e->client->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (atomic_load(&owner->lock) == f->lock) {
      atomic_store(&owner->lock, NULL);
      lk__lock_owner_set_lost(owner);
      lk__recipe_free(owner);
    }
  }
  lk__blocking_call_complete(e, 0);
}

bool lk__sync_lock_end_threads(lk_sync_lock *l)
{
  lock_end f = {.lock = l};

  if (lk__blocking_call_do(&f.call, l->client, begin_lock_end) != 0)
    return false;
  lk__sync_await_calls(l->client, &l->inside);
  return true;
}

void lk_sync_lock_free(lk_sync_lock *l)
{
  if (l != NULL && lk__sync_lock_end_threads(l))
    lk__sync_lock_destroy(l);
}
