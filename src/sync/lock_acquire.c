/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"
#include "sync/recipe.h"

/* For lk_lock_acquire(): the lock is tried once. */
enum { NO_WAITING = 0 };

/* ---- acquire ------------------------------------------------------------- */

/* An acquire has failed or a release has completed: free the lk_lock, if it was
   made, and complete the call. If the call was interrupted, its result is the
   reason for that. */
static void free_recipe_and_complete(lk_lock_owner *owner, int err)
{
  lk__lock_owner_remove(owner);
  lk__recipe_free(owner);
  lk__blocking_call_complete(
      &owner->call, owner->interrupt_err != 0 ? owner->interrupt_err : err);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  lk_lock_owner *owner = arg;

  if (err != 0) {
    free_recipe_and_complete(owner, err);
    return;
  }
  owner->token = lk_lock_token(l);
  owner->handoffs = lk_lock_handoffs(l);
  lk__lock_owner_publish(owner);
  lk__blocking_call_complete(&owner->call, 0);
}

/* lk_lock_cancel() calls on_acquired(), which completes the call. */
static void interrupt_acquire(lk_blocking_call *b, int err)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);

  owner->interrupt_err = err;
  lk_lock_cancel(owner->recipe);
}

static int start_acquire(lk_lock_owner *owner)
{
  /* lk_sync_lock_free() may have begun after the thread entered the lock. */
  if (atomic_load(&owner->lock)->freeing)
    return LK_ERR_CLOSED;
  int err = lk__recipe_make(owner);

  return err != 0 ? err
                  : lk_lock_acquire(owner->recipe, owner->acquire_timeout_ms,
                                    on_acquired, owner);
}

static void begin_acquire(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = start_acquire(owner);
  if (err != 0) {
    free_recipe_and_complete(owner, err);
    return;
  }
  lk__safe_list_add(&owner->client->lock_owners, &owner->link);
  lk__blocking_call_allow_interrupt(b, interrupt_acquire);
  lk__blocking_call_start_timer(b);
}

/* The thread has a lock owner already. */
static int acquire_again(lk_lock_owner *owner, lk_kind kind,
                         const lk_sync_call *call)
{
  int err = lk__sync_call_refusal(owner->client, call);

  if (err != 0)
    return err;
  if (lk__lock_owner_is_lost(owner))
    return LK_ERR_LOST;
  if (kind == LK_KIND_SEMAPHORE) /* a thread can hold one permit only */
    return LK_ERR_DEADLOCK;
  owner->count++;
  return 0;
}

/* `timeout_ms` limits how long the lock is waited for once the call has begun
   on the thread of the handle: NO_WAITING or LK_NO_LIMIT. The deadline of
   `call` applies as well. */
static int acquire_for_this_thread(lk_sync_lock *l, const lk_sync_call *call,
                                   int64_t timeout_ms)
{
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner != NULL)
    return acquire_again(owner, l->kind, call);
  owner = lk__lock_owner_new(l);
  if (owner == NULL)
    return LK_ERR_NO_MEMORY;
  owner->acquire_timeout_ms = timeout_ms;
  if (l->partner != NULL)
    owner->partner = lk__lock_owner_find(l->partner);
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err == 0) {
    err = lk__blocking_call_wait(&owner->call, begin_acquire);
    lk__blocking_call_destroy(&owner->call);
  }
  if (err == 0)
    owner->count = 1;
  else
    lk__lock_owner_delete(owner);
  return err;
}

static int enter_and_acquire(lk_sync_lock *l, const lk_sync_call *call,
                             int64_t timeout_ms)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = acquire_for_this_thread(l, call, timeout_ms);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}

int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, LK_NO_LIMIT);
}

int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, NO_WAITING);
}

/* ---- release ------------------------------------------------------------- */

int lk_sync_lock_release(lk_sync_lock *l)
{
  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  if (lk__lock_owner_is_lost(owner)) {
    lk__lock_owner_release(owner);
    return LK_ERR_LOST;
  }
  owner->count--;
  if (owner->count == 0)
    lk__lock_owner_release(owner);
  return 0;
}

static void on_released(lk_lock *l, int err, void *arg)
{
  (void)l;
  free_recipe_and_complete(arg, err);
}

/* The node is still deleted, but the call does not wait for that. Freeing the
   lk_lock calls on_released(), which completes the call. */
static void interrupt_release(lk_blocking_call *b, int err)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);

  owner->interrupt_err = err;
  lk__recipe_free(owner);
}

/* A call that may not wait, because its deadline has passed or its cancel is
   set, is interrupted only after its release has begun. */
static void begin_release(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int refusal = lk__blocking_call_refusal(b);

  lk__lock_owner_set_lost(owner); /* from now on the thread holds nothing */
  int err = owner->recipe == NULL
                ? LK_ERR_CLOSED
                : lk_lock_release_until(owner->recipe, LK_NO_LIMIT, on_released,
                                        owner);

  if (err != 0) {
    free_recipe_and_complete(owner, err);
    return;
  }
  lk__blocking_call_allow_interrupt(b, interrupt_release);
  lk__blocking_call_start_timer(b);
  if (refusal != 0)
    b->interrupt(b, refusal);
}

static int release_and_wait(lk_lock_owner *owner, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_release);
  lk__blocking_call_destroy(&owner->call);
  lk__lock_owner_delete(owner);
  return err;
}

/* There is no node to delete. A release that is cancelled takes place. */
static int release_without_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int refusal = lk__sync_call_refusal(l->client, call);

  if (refusal == LK_ERR_BAD_ARGUMENT)
    return refusal;
  int err = lk_sync_lock_release(l);

  return err != 0 ? err : refusal;
}

int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  lk_lock_owner *owner = lk__lock_owner_find(l);
  bool has_node_to_delete =
      owner != NULL && owner->count == 1 && !lk__lock_owner_is_lost(owner);

  err = has_node_to_delete ? release_and_wait(owner, call)
                           : release_without_wait(l, call);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}
