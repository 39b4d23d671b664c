/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"

/* lk_sync_lock_wait_certain() waits while the lock of this thread is unsure. */

static void interrupt_wait(lk_blocking_call *b, int err)
{
  lk__lock_owner_end_wait(lk__lock_owner_of(b), err);
}

static void begin_wait(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  owner->awaits_certainty = true;
  lk__blocking_call_allow_interrupt(b, interrupt_wait);
  lk__blocking_call_start_timer(b);
  lk__lock_owner_check_wait(owner);
}

static int wait_for_certainty(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_wait);
  lk__blocking_call_destroy(&owner->call);
  return err;
}

int lk_sync_lock_wait_certain(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = wait_for_certainty(l, call);
  lk__sync_lock_leave(l, cancel_state);
  return err;
}
