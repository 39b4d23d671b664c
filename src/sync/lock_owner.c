/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owner.h"

/* The thread of the handle stores the state of a lock for the thread that owns
   it. */

static bool holds_for_certain(lk_lock_owner *owner)
{
  int64_t sure_until_ms = atomic_load(&owner->sure_until_ms);

  return sure_until_ms != LK_NOT_SURE &&
         lk__blocking_call_clock(&owner->call) < sure_until_ms;
}

void lk__lock_owner_end_wait(lk_lock_owner *owner, int err)
{
  owner->awaits_certainty = false;
  lk__blocking_call_complete(&owner->call, err);
}

/* The lease deadline may have passed although the lock is not unsure yet. Then
   the wait goes on, until a later deadline is stored or the lock is lost. */
void lk__lock_owner_check_wait(lk_lock_owner *owner)
{
  if (!owner->awaits_certainty)
    return;
  bool closed = owner->client->closing || atomic_load(&owner->lock) == NULL;

  if (lk__lock_owner_is_lost(owner))
    lk__lock_owner_end_wait(owner, closed ? LK_ERR_CLOSED : LK_ERR_LOST);
  else if (holds_for_certain(owner))
    lk__lock_owner_end_wait(owner, 0);
}

/* The descriptor of lk_sync_lock_fd() is readable while there is a doubt. */
static void lock_owner_set_doubt(lk_lock_owner *owner, bool doubt)
{
  if (doubt == owner->doubt)
    return;
  owner->doubt = doubt;
  pthread_mutex_lock(&owner->client->mutex);
  if (owner->doubt_fd.read_fd >= 0 && doubt)
    lk__flag_fd_set(&owner->doubt_fd);
  else if (owner->doubt_fd.read_fd >= 0)
    lk__flag_fd_clear(&owner->doubt_fd);
  pthread_mutex_unlock(&owner->client->mutex);
}

/* The deadlines are stored before any callback or wakeup. So a thread that was
   notified of a doubt sees it in `sure_until_ms`. */
static void lock_owner_store(lk_lock_owner *owner, int64_t sure_until_ms,
                             int64_t lease_deadline_ms)
{
  atomic_store_explicit(&owner->sure_until_ms, sure_until_ms,
                        memory_order_release);
  atomic_store_explicit(&owner->lease_deadline_ms, lease_deadline_ms,
                        memory_order_release);
  lock_owner_set_doubt(owner, sure_until_ms == LK_NOT_SURE);
  lk__lock_owner_check_wait(owner);
}

void lk__lock_owner_set_lost(lk_lock_owner *owner)
{
  lock_owner_store(owner, LK_NOT_SURE, LK_NOT_HELD);
}

void lk__lock_owner_publish(lk_lock_owner *owner)
{
  int64_t lease_deadline_ms = lk_lock_deadline(owner->recipe);
  bool sure = lk_lock_get_state(owner->recipe) == LK_LOCK_HELD;

  lock_owner_store(owner, sure ? lease_deadline_ms : LK_NOT_SURE,
                   lease_deadline_ms);
}

void lk__lock_owner_notify(const lk_lock_owner *owner,
                           const lk_lock_event *event)
{
  lk_sync_lock *l = atomic_load(&owner->lock);

  if (l->on_event != NULL)
    l->on_event(l, event, owner->token, l->arg);
}

void lk__lock_owner_on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  lk_lock_owner *owner = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_RENEWED: lk__lock_owner_publish(owner); break;
  case LK_LOCK_EVENT_LOST: lk__lock_owner_set_lost(owner); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
  lk__lock_owner_notify(owner, event);
}
