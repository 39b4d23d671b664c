/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/timeout.h"
#include "recipes/lock/lock_callbacks.h"

/* How long lk_lock_release() waits for the delete of the node. The same value
 * as the limit of lk_client_close(). */
enum { RELEASE_MS = 1500 };

static void lock_complete_in_next_turn(lk_lock *l)
{
  lk__lock_start_timer(l, &l->timers.next_turn, 0);
}

static int lock_reenter(lk_lock *l, lk_lock_cb done, void *arg)
{
  if (l->not_reentrant)
    return LK_ERR_DEADLOCK;
  l->count++;
  l->acquire_reenters = true;
  lk__completion_set(&l->acquire, done, arg);
  lock_complete_in_next_turn(l);
  return 0;
}

static int lock_begin_acquire(lk_lock *l, bool once, int64_t deadline_ms,
                              lk_lock_cb done, void *arg)
{
  l->options.contender.once = once;
  l->acquisition = l->source.make(l, &lk__lock_callbacks);
  if (l->acquisition == NULL)
    return LK_ERR_NO_MEMORY;
  l->start_err = 0;
  /* An acquisition that fails while it begins is reported by the return value:
   * `acquire` is not set yet, so its callback is not invoked. */
  l->acquisition->kind->begin(l->acquisition);
  if (l->start_err != 0)
    return l->start_err;
  l->acquire_reenters = false;
  lk__completion_set(&l->acquire, done, arg);
  if (deadline_ms != INT64_MAX)
    lk__lease_start_timer(l->lease, &l->timers.acquire, deadline_ms);
  return 0;
}

/* The acquire is not completed if it has been cancelled meanwhile. */
static void on_late_acquire(lk_client *c, int err, const lk_stat *stat,
                            void *arg)
{
  lk_lock *l = arg;

  (void)c;
  (void)stat;
  if (l->acquire_is_late) {
    l->acquire_is_late = false;
    lk__lock_complete(l, &l->acquire, err);
  }
  lk__lock_leave(l); /* entered by lock_begin_late_acquire() */
}

/* The deadline has passed, and the acquire must complete after the caller has
 * returned. A read whose deadline is now is used for that: the client never
 * sends it, and completes it with LK_ERR_DEADLINE in the next turn of the loop,
 * or when the client is closed. */
static int lock_begin_late_acquire(lk_lock *l, int64_t now_ms, lk_lock_cb done,
                                   void *arg)
{
  const lk_call call = {.size = sizeof call, .deadline_ms = now_ms};
  int err =
      lk_exists(l->lease->client, l->options.path, &call, on_late_acquire, l);

  if (err != 0)
    return err;
  lk__lock_enter(l);
  l->acquire_is_late = true;
  l->acquire_reenters = false;
  lk__completion_set(&l->acquire, done, arg);
  return 0;
}

/* Why this handle cannot acquire now. 0: the client exists and is not closed.
 */
static int lock_acquire_refusal(const lk_lock *l)
{
  if (l->freeing)
    return LK_ERR_CLOSED;
  if (l->lease->end_err != 0)
    return l->lease->end_err;
  if (lk__lock_is_forked(l))
    return LK_ERR_FORKED;
  if (l->lost || l->acquire.pending ||
      (l->acquisition != NULL && !lk__lock_holds(l)))
    return LK_ERR_STATE;
  bool is_side_to_acquire = l->partner != NULL && !lk__lock_holds(l);

  return is_side_to_acquire ? l->side_refusal(l) : 0;
}

/* `once`: complete with LK_ERR_BUSY instead of waiting. If the deadline has
 * passed, a lock that is held already is acquired again all the same, since
 * this takes no time. */
static int lock_acquire(lk_lock *l, int64_t now, int64_t deadline_ms, bool once,
                        lk_lock_cb done, void *arg)
{
  if (lk__lock_holds(l))
    return lock_reenter(l, done, arg);
  return deadline_ms <= now
             ? lock_begin_late_acquire(l, now, done, arg)
             : lock_begin_acquire(l, once, deadline_ms, done, arg);
}

int lk_lock_acquire(lk_lock *l, int64_t timeout_ms, lk_lock_cb done, void *arg)
{
  int err = lock_acquire_refusal(l);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);
  bool once = timeout_ms == 0; /* such an acquire does not wait for others */
  int64_t deadline_ms = once ? INT64_MAX : lk__timeout_after(now, timeout_ms);

  return lock_acquire(l, now, deadline_ms, once, done, arg);
}

int lk_lock_acquire_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                          void *arg)
{
  int err = lock_acquire_refusal(l);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);
  const bool once = false;

  return lock_acquire(l, now, lk__timeout_until(now, deadline_ms), once, done,
                      arg);
}

void lk_lock_cancel(lk_lock *l)
{
  if (!l->acquire.pending)
    return;
  if (!lk__lock_holds(l)) {
    lk__lock_give_up(l, LK_ERR_CANCELLED);
    return;
  }
  lk__lock_enter(l);
  /* The pending acquire has already been counted. The release undoes that, and
   * needs no callback. */
  (void)lk_lock_release(l, NULL, NULL);
  lk__lock_complete_reentry(l, LK_ERR_CANCELLED);
  lk__lock_leave(l);
}

static void lock_release_last(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                              void *arg)
{
  lk_acquisition *a = lk__lock_detach_acquisition(l);

  lk__lock_enter(l);
  l->count = 0;
  if (done == NULL) {
    lk__lock_stop_acquisition(a);
  } else {
    lk__completion_set(&l->release, done, arg);
    l->released = a;
    if (deadline_ms != INT64_MAX)
      lk__lease_start_timer(l->lease, &l->timers.release, deadline_ms);
    lk__lock_stop_acquisition_and_report(a);
  }
  lk__lock_complete_verify(l, LK_ERR_NOT_HELD);
  lk__lock_complete_without_reply(l, LK_ERR_CANCELLED);
  lk__lock_leave(l);
}

static void lock_count_down(lk_lock *l, lk_lock_cb done, void *arg)
{
  l->count--;
  if (done != NULL) {
    lk__completion_set(&l->release, done, arg);
    lock_complete_in_next_turn(l);
  }
}

/* Returns 0, or why this handle cannot release now. With 0 the client exists
 * and is not closed. `notifies`: the user has passed a callback. */
static int lock_begin_release(lk_lock *l, bool notifies)
{
  if (lk__lock_is_forked(l))
    return LK_ERR_FORKED;
  /* A release of a lost lock reports the loss. Then the user can acquire the
   * lock again. */
  if (l->lost) {
    l->lost = false;
    l->count = 0;
    return LK_ERR_LOST;
  }
  if (!lk__lock_holds(l))
    return LK_ERR_NOT_HELD;
  return notifies && l->release.pending ? LK_ERR_STATE : 0;
}

static void lock_release(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                         void *arg)
{
  if (l->count == 1)
    lock_release_last(l, deadline_ms, done, arg);
  else
    lock_count_down(l, done, arg);
}

int lk_lock_release(lk_lock *l, lk_lock_cb done, void *arg)
{
  int err = lock_begin_release(l, done != NULL);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);

  lock_release(l, lk__timeout_after(now, RELEASE_MS), done, arg);
  return 0;
}

int lk_lock_release_until(lk_lock *l, int64_t deadline_ms, lk_lock_cb done,
                          void *arg)
{
  int err = lock_begin_release(l, done != NULL);

  if (err != 0)
    return err;
  int64_t now = lk_client_clock(l->lease->client);

  lock_release(l, lk__timeout_until(now, deadline_ms), done, arg);
  return 0;
}
