/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lock/lock_callbacks.h"

void lk__lock_destroy(lk_lock *l)
{
  lk_session_lease *lease = l->lease;

  lk__lock_options_free(&l->options, &lease->mem);
  if (l->source.free_plan != NULL)
    l->source.free_plan(l->source.plan, &lease->mem);
  lk__mem_free(&lease->mem, l);
  lk__lease_unref(lease);
}

void lk__lock_enter(lk_lock *l)
{
  l->callbacks_running++;
}

void lk__lock_leave(lk_lock *l)
{
  if (--l->callbacks_running == 0 && l->freeing)
    lk__lock_destroy(l);
}

void lk__lock_notify(lk_lock *l, const lk_lock_event *event)
{
  lk__lock_enter(l);
  if (l->on_event != NULL && !l->freeing)
    l->on_event(l, event, l->arg);
  lk__lock_leave(l);
}

void lk__completion_set(lk_completion *completion, lk_lock_cb done, void *arg)
{
  *completion = (lk_completion){.done = done, .arg = arg, .pending = true};
}

void lk__lock_complete(lk_lock *l, lk_completion *completion, int err)
{
  lk_completion copy = *completion; /* the callback may set it anew */

  completion->pending = false;
  if (copy.pending && copy.done != NULL)
    copy.done(l, err, copy.arg);
}

void lk__lock_complete_verify(lk_lock *l, int err)
{
  if (l->verifying != NULL)
    l->verifying->lock = NULL;
  l->verifying = NULL;
  lk__lock_enter(l);
  lk__lock_complete(l, &l->verify, err);
  lk__lock_leave(l);
}

/* A callback may have lost or released the lock and begun a new acquire. That
 * acquire does not reenter, and is not completed here. */
void lk__lock_complete_reentry(lk_lock *l, int err)
{
  if (l->acquire_reenters)
    lk__lock_complete(l, &l->acquire, err);
}

void lk__lock_complete_without_reply(lk_lock *l, int acquire_err)
{
  lk__lease_stop_timer(l->lease, &l->timers.next_turn);
  lk__lock_complete_reentry(l, acquire_err);
  if (l->released == NULL)
    lk__lock_complete(l, &l->release, 0);
}
