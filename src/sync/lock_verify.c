/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* Whether a thread holds: asking a quorum, and waiting while that is in doubt.
 */

static lk_thread_lock *thread_lock_of(lk_blocking_call *e)
{
  return LK_OWNER(e, lk_thread_lock, call);
}

/* ---- verify and guarded -------------------------------------------------- */

static void end_verify(lk_thread_lock *h, int err)
{
  if (!h->verifying)
    return;
  h->verifying = false;
  lk__blocking_call_complete(&h->call, err);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  (void)l;
  end_verify(arg, err);
}

static void interrupt_verify(lk_blocking_call *e, int err)
{
  end_verify(thread_lock_of(e), err);
}

static void begin_verify(lk_blocking_call *e)
{
  lk_thread_lock *h = thread_lock_of(e);
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err == 0)
    err = h->recipe == NULL ? LK_ERR_CLOSED
                            : lk_lock_verify(h->recipe, on_verified, h);
  if (err != 0) {
    lk__blocking_call_complete(e, err);
    return;
  }
  h->verifying = true;
  lk__blocking_call_allow_interrupt(e, interrupt_verify);
  lk__blocking_call_start_timer(e);
}

static int thread_verify(lk_thread_lock *h, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&h->call, h->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&h->call, begin_verify);
  lk__blocking_call_destroy(&h->call);
  return err;
}

int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_sync_client *c = lk__sync_lock_client(l);
  int cancelling;
  int err =
      lk__sync_enter_object(c, l == NULL ? NULL : &l->inside, &cancelling);

  if (err != 0)
    return err;
  lk_thread_lock *h = lk__thread_lock_find(l);

  err = h == NULL ? LK_ERR_NOT_HELD : thread_verify(h, call);
  lk__sync_leave_object(c, &l->inside, cancelling);
  return err;
}

int lk_sync_lock_guarded_multi(lk_sync_lock *l, lk_sync_result **out,
                               const lk_op *ops, size_t count,
                               const lk_sync_call *call)
{
  int err = lk__sync_refusal(lk__sync_lock_client(l));
  lk_thread_lock *h = err == 0 ? lk__thread_lock_find(l) : NULL;

  if (out != NULL)
    *out = NULL;
  if (err == 0 && h == NULL)
    err = LK_ERR_NOT_HELD;
  return err != 0 ? err : lk__sync_multi(l->client, out, h, ops, count, call);
}

/* ---- waiting ------------------------------------------------------------- */

static bool holds_for_certain(lk_thread_lock *h)
{
  int64_t sure_ms = atomic_load(&h->sure_ms);

  return sure_ms != INT64_MIN && lk__blocking_call_clock(&h->call) < sure_ms;
}

static void interrupt_wait(lk_blocking_call *e, int err)
{
  thread_lock_of(e)->waiting = false;
  lk__blocking_call_complete(e, err);
}

/* If the lease deadline has passed, and the lock is not unsure yet, the wait
   goes on: either comes next, a later deadline or the doubt. */
void lk__thread_lock_check_wait(lk_thread_lock *h)
{
  bool closed = h->client->closed || atomic_load(&h->lock) == NULL;

  if (!h->waiting)
    return;
  if (lk__thread_lock_is_lost(h))
    interrupt_wait(&h->call, closed ? LK_ERR_CLOSED : LK_ERR_LOST);
  else if (holds_for_certain(h))
    interrupt_wait(&h->call, 0);
}

static void begin_wait(lk_blocking_call *e)
{
  lk_thread_lock *h = thread_lock_of(e);
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err != 0) {
    lk__blocking_call_complete(e, err);
    return;
  }
  h->waiting = true;
  lk__blocking_call_allow_interrupt(e, interrupt_wait);
  lk__blocking_call_start_timer(e);
  lk__thread_lock_check_wait(h);
}

static int wait_for_certainty(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_thread_lock *h = lk__thread_lock_find(l);

  if (h == NULL)
    return LK_ERR_NOT_HELD;
  int err = lk__blocking_call_init_from(&h->call, h->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&h->call, begin_wait);
  lk__blocking_call_destroy(&h->call);
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
