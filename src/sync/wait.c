/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/holder.h"

/**
 * @file
 * Waiting while what a thread holds is unsure. It ends by what is published of
 * the lock, on the handle's thread.
 */

/* ---- the handle's thread ------------------------------------------------- */

static lk_holder *holder_that_waits(lk_blocking_call *e)
{
  return LK_OWNER(e, lk_holder, errand);
}

static bool holds_for_certain(lk_holder *h)
{
  int64_t sure_ms = atomic_load(&h->sure_ms);

  return sure_ms != INT64_MIN && lk__blocking_call_clock(&h->errand) < sure_ms;
}

static void cut_wait(lk_blocking_call *e, int err)
{
  holder_that_waits(e)->waiting = false;
  lk__blocking_call_complete(e, err);
}

/* A lease that is over without a doubt is decided by what comes next: another
   lease, or the doubt. */
void lk__holder_check_wait(lk_holder *h)
{
  bool closed = h->client->closed || atomic_load(&h->lock) == NULL;

  if (!h->waiting)
    return;
  if (lk__holder_is_lost(h))
    cut_wait(&h->errand, closed ? LK_ERR_CLOSED : LK_ERR_LOST);
  else if (holds_for_certain(h))
    cut_wait(&h->errand, 0);
}

static void begin_wait(lk_blocking_call *e)
{
  lk_holder *h = holder_that_waits(e);
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err != 0) {
    lk__blocking_call_complete(e, err);
    return;
  }
  h->waiting = true;
  lk__blocking_call_allow_interrupt(e, cut_wait);
  lk__blocking_call_start_timer(e);
  lk__holder_check_wait(h);
}

/* ---- the holder's thread ------------------------------------------------- */

static int wait_for_certainty(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_holder *h = lk__holder_find(l);

  if (h == NULL)
    return LK_ERR_NOT_HELD;
  int err = lk__blocking_call_init_from(&h->errand, h->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&h->errand, begin_wait);
  lk__blocking_call_destroy(&h->errand);
  return err;
}

int lk_sync_lock_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_sync_client *c = lk__sync_lock_client(l);
  int cancelling;
  int err =
      lk__sync_enter_object(c, l == NULL ? NULL : &l->inside, &cancelling);

  if (err != 0)
    return err;
  err = wait_for_certainty(l, call);
  lk__sync_leave_object(c, &l->inside, cancelling);
  return err;
}
