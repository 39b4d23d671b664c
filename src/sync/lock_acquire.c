/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"
#include "sync/recipe.h"

/* ---- acquire ------------------------------------------------------------- */

/* Free the lk_lock of an acquire that failed, or of a release, and complete the
   call. */
static void free_recipe_and_complete(lk_lock_owner *h, int err)
{
  lk__lock_owner_remove(h);
  lk__recipe_free(h);
  lk__blocking_call_complete(&h->call,
                             h->interrupt_err != 0 ? h->interrupt_err : err);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  lk_lock_owner *h = arg;

  if (err != 0) {
    free_recipe_and_complete(h, err);
    return;
  }
  h->token = lk_lock_token(l);
  h->handoffs = lk_lock_handoffs(l);
  lk__lock_owner_publish(h);
  lk__blocking_call_complete(&h->call, 0);
}

static void interrupt_acquire(lk_blocking_call *e, int err)
{
  lk_lock_owner *h = lk__lock_owner_of(e);

  h->interrupt_err = err;
  lk_lock_cancel(h->recipe);
}

/* The lock may have been freed since the call was made. */
static int start_acquire(lk_lock_owner *h)
{
  int err = atomic_load(&h->lock)->freed ? LK_ERR_CLOSED : lk__recipe_make(h);

  return err != 0 ? err
                  : lk_lock_acquire(h->recipe, h->once ? 0 : LK_NO_LIMIT,
                                    on_acquired, h);
}

static void begin_acquire(lk_blocking_call *e)
{
  lk_lock_owner *h = lk__lock_owner_of(e);
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err == 0)
    err = start_acquire(h);
  if (err != 0) {
    free_recipe_and_complete(h, err);
    return;
  }
  lk__safe_list_add(&h->client->lock_owners, &h->link);
  lk__blocking_call_allow_interrupt(e, interrupt_acquire);
  lk__blocking_call_start_timer(e);
}

static int thread_acquire(lk_sync_lock *l, const lk_sync_call *call, bool once)
{
  lk_lock_owner *h = lk__lock_owner_find(l);

  if (h != NULL && lk__lock_owner_is_lost(h))
    return LK_ERR_LOST;
  if (h != NULL && l->kind == LK_KIND_SEMAPHORE)
    return LK_ERR_DEADLOCK;
  if (h != NULL) {
    h->count++;
    return 0;
  }
  h = lk__lock_owner_new(l);
  if (h == NULL)
    return LK_ERR_NO_MEMORY;
  h->once = once;
  if (l->partner != NULL)
    h->partner = lk__lock_owner_find(l->partner);
  int err = lk__blocking_call_init_from(&h->call, h->client, call);

  if (err == 0) {
    err = lk__blocking_call_wait(&h->call, begin_acquire);
    lk__blocking_call_destroy(&h->call);
  }
  if (err == 0)
    h->count = 1;
  else
    lk__lock_owner_delete(h);
  return err;
}

static int enter_and_acquire(lk_sync_lock *l, const lk_sync_call *call,
                             bool once)
{
  int cancelling;
  int err = lk__sync_lock_enter(l, &cancelling);

  if (err != 0)
    return err;
  err = thread_acquire(l, call, once);
  lk__sync_lock_leave(l, cancelling);
  return err;
}

int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, false);
}

int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, true);
}

/* ---- release ------------------------------------------------------------- */

/* Whether the lock owner is to be released, since its count is 0 or the lock
   was lost. `err` gets the result of the call. */
static bool count_release(lk_lock_owner *h, int *err)
{
  *err = 0;
  if (h == NULL)
    *err = LK_ERR_NOT_HELD;
  else if (lk__lock_owner_is_lost(h))
    *err = LK_ERR_LOST;
  else
    return --h->count == 0;
  return h != NULL;
}

int lk_sync_lock_release(lk_sync_lock *l)
{
  int err;

  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  lk_lock_owner *h = lk__lock_owner_find(l);

  if (count_release(h, &err))
    lk__lock_owner_release(h);
  return err;
}

static void on_released(lk_lock *l, int err, void *arg)
{
  (void)l;
  free_recipe_and_complete(arg, err);
}

static void interrupt_release(lk_blocking_call *e, int err)
{
  lk_lock_owner *h = lk__lock_owner_of(e);

  h->interrupt_err = err;
  lk__recipe_free(h);
}

static void begin_release(lk_blocking_call *e)
{
  lk_lock_owner *h = lk__lock_owner_of(e);
  int refusal = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  lk__lock_owner_set_lost(h);
  int err = h->recipe == NULL
                ? LK_ERR_CLOSED
                : lk_lock_release_until(h->recipe, LK_NO_LIMIT, on_released, h);

  if (err != 0) {
    free_recipe_and_complete(h, err);
    return;
  }
  lk__blocking_call_allow_interrupt(e, interrupt_release);
  lk__blocking_call_start_timer(e);
  if (refusal != 0)
    e->interrupt(e, refusal);
}

static int release_and_wait(lk_lock_owner *h, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&h->call, h->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&h->call, begin_release);
  lk__blocking_call_destroy(&h->call);
  lk__lock_owner_delete(h);
  return err;
}

int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancelling;
  int err = lk__sync_lock_enter(l, &cancelling);

  if (err != 0)
    return err;
  lk_lock_owner *h = lk__lock_owner_find(l);

  if (h == NULL || h->count > 1 || lk__lock_owner_is_lost(h))
    err = lk_sync_lock_release(l); /* nothing to wait for */
  else
    err = release_and_wait(h, call);
  lk__sync_lock_leave(l, cancelling);
  return err;
}
