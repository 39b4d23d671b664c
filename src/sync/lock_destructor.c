/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_destructor.h"

#include "sync/call_entry.h"
#include "sync/recipe.h"

/** A call that ends all lock owners of `lock`. */
typedef struct end_call {
  lk_blocking_call call;
  lk_sync_lock *lock;
} end_call;

static void begin_end_owners(lk_blocking_call *b)
{
  lk_sync_lock *lock = LK_OWNER(b, end_call, call)->lock;
  lk_safe_iterator it;

  lock->freeing = true;
  lk__safe_iterator_begin(&it, &b->client->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (atomic_load(&owner->lock) == lock) {
      atomic_store(&owner->lock, NULL);
      lk__lock_owner_set_lost(owner);
      lk__recipe_free(owner);
    }
  }
  lk__blocking_call_complete(b, 0);
}

bool lk__sync_lock_end_owners(lk_sync_lock *l)
{
  end_call end = {.lock = l};
  int err = lk__blocking_call_do(&end.call, l->client, begin_end_owners);

  if (err != 0)
    return false;
  lk__sync_await_calls(l->client, &l->calls_inside);
  return true;
}

void lk_sync_lock_free(lk_sync_lock *l)
{
  if (l != NULL && lk__sync_lock_end_owners(l))
    lk__sync_lock_destroy(l);
}
