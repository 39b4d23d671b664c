/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owner.h"

#include <sys/eventfd.h>

/* What the thread of the handle stores for the thread that holds. */

static bool holds_for_certain(lk_lock_owner *h)
{
  int64_t sure_ms = atomic_load(&h->sure_ms);

  return sure_ms != INT64_MIN && lk__blocking_call_clock(&h->call) < sure_ms;
}

void lk__lock_owner_end_wait(lk_lock_owner *h, int err)
{
  h->waiting = false;
  lk__blocking_call_complete(&h->call, err);
}

/* If the lease deadline has passed, and the lock is not unsure yet, the wait
   goes on: either comes next, a later deadline or the doubt. */
void lk__lock_owner_check_wait(lk_lock_owner *h)
{
  bool closed = h->client->closed || atomic_load(&h->lock) == NULL;

  if (!h->waiting)
    return;
  if (lk__lock_owner_is_lost(h))
    lk__lock_owner_end_wait(h, closed ? LK_ERR_CLOSED : LK_ERR_LOST);
  else if (holds_for_certain(h))
    lk__lock_owner_end_wait(h, 0);
}

static void lock_owner_set_doubt(lk_lock_owner *h, bool doubt)
{
  eventfd_t none;

  if (doubt == h->doubt)
    return;
  h->doubt = doubt;
  pthread_mutex_lock(&h->client->mutex);
  if (h->fd >= 0)
    (void)(doubt ? eventfd_write(h->fd, 1) : eventfd_read(h->fd, &none));
  pthread_mutex_unlock(&h->client->mutex);
}

/* Doubt is stored before any callback or wakeup, so that a thread that was
   notified sees it. */
static void lock_owner_store(lk_lock_owner *h, int64_t sure_ms,
                             int64_t until_ms)
{
  atomic_store_explicit(&h->sure_ms, sure_ms, memory_order_release);
  atomic_store_explicit(&h->until_ms, until_ms, memory_order_release);
  lock_owner_set_doubt(h, sure_ms == INT64_MIN);
  lk__lock_owner_check_wait(h);
}

void lk__lock_owner_set_lost(lk_lock_owner *h)
{
  lock_owner_store(h, INT64_MIN, INT64_MIN);
}

void lk__lock_owner_publish(lk_lock_owner *h)
{
  int64_t until = lk_lock_deadline(h->recipe);
  bool sure = lk_lock_get_state(h->recipe) == LK_LOCK_HELD;

  lock_owner_store(h, sure ? until : INT64_MIN, until);
}

void lk__lock_owner_notify(const lk_lock_owner *h, const lk_lock_event *event)
{
  lk_sync_lock *l = atomic_load(&h->lock);

  if (l->on_event != NULL)
    l->on_event(l, event, h->token, l->arg);
}

void lk__lock_owner_on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  lk_lock_owner *h = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_RENEWED: lk__lock_owner_publish(h); break;
  case LK_LOCK_EVENT_LOST: lk__lock_owner_set_lost(h); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
  lk__lock_owner_notify(h, event);
}
