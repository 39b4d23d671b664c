/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"

/* lk_sync_lock_verify(): asks a quorum whether this thread holds. */

static void complete_verify(lk_lock_owner *owner, int err)
{
  if (!owner->verifying) /* an interrupt has completed the call already */
    return;
  owner->verifying = false;
  lk__blocking_call_complete(&owner->call, err);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  (void)l;
  complete_verify(arg, err);
}

static void interrupt_verify(lk_blocking_call *b, int err)
{
  complete_verify(lk__lock_owner_of(b), err);
}

static void begin_verify(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = owner->recipe == NULL
              ? LK_ERR_CLOSED
              : lk_lock_verify(owner->recipe, on_verified, owner);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  owner->verifying = true;
  lk__blocking_call_allow_interrupt(b, interrupt_verify);
  lk__blocking_call_start_timer(b);
}

static int thread_verify(lk_lock_owner *owner, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_verify);
  lk__blocking_call_destroy(&owner->call);
  return err;
}

int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  err = owner == NULL ? LK_ERR_NOT_HELD : thread_verify(owner, call);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}
