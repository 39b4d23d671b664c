/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/holder.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the thread that holds ----------------------------------------------- */

static void holder_free(lk_holder *h)
{
  if (h->fd >= 0)
    close(h->fd);
  lk__mem_free(&h->client->mem, h);
}

lk_holder *lk__holder_find(const lk_sync_lock *l)
{
  lk_holder *h = pthread_getspecific(l->client->held);

  while (h != NULL && atomic_load(&h->lock) != l)
    h = h->next;
  return h;
}

static void begin_retire(lk_task *t)
{
  lk_holder *h = LK_OWNER(t, lk_holder, retire);

  lk__holder_remove(h);
  lk__holder_free_lock(h);
  holder_free(h);
}

/* If the thread of the handle ends, lk__holders_free() frees it. */
static void holder_retire(lk_holder *h)
{
  h->retire.begin = begin_retire;
  (void)lk__sync_post(h->client, &h->retire);
}

/* Retire those whose lock was freed meanwhile. Only the thread itself may
   change its list. */
static lk_holder *holders_without_freed_locks(lk_holder *first)
{
  lk_holder **at = &first;

  while (*at != NULL) {
    lk_holder *h = *at;

    if (atomic_load(&h->lock) != NULL) {
      at = &h->next;
    } else {
      *at = h->next;
      holder_retire(h);
    }
  }
  return first;
}

lk_holder *lk__holder_new(lk_sync_lock *l)
{
  lk_sync_client *c = l->client;
  lk_holder *h = lk__mem_new(&c->mem, sizeof *h);

  if (h == NULL)
    return NULL;
  h->client = c;
  atomic_init(&h->lock, l);
  atomic_init(&h->sure_ms, INT64_MIN);
  atomic_init(&h->until_ms, INT64_MIN);
  h->fd = -1;
  lk__list_init(&h->link);
  h->next = holders_without_freed_locks(pthread_getspecific(c->held));
  if (pthread_setspecific(c->held, h) == 0)
    return h;
  /* No memory, which only the first holder of a thread needs. */
  holder_free(h);
  return NULL;
}

/* With an empty list, no destructor runs when the thread ends. Setting a key
   that was set before cannot fail. */
static void holder_unlist(lk_holder *h)
{
  lk_holder *first = pthread_getspecific(h->client->held);
  lk_holder **at = &first;

  while (*at != h)
    at = &(*at)->next;
  *at = h->next;
  (void)pthread_setspecific(h->client->held, first);
}

void lk__holder_release(lk_holder *h)
{
  lk_sync_client *c = h->client;
  int cancelling = lk__sync_hold_cancel();

  holder_unlist(h);
  pthread_mutex_lock(&c->mutex);
  if (h->fd >= 0)
    close(h->fd);
  h->fd = -1;
  pthread_mutex_unlock(&c->mutex);
  holder_retire(h);
  lk__sync_restore_cancel(cancelling);
}

void lk__holder_delete(lk_holder *h)
{
  holder_unlist(h);
  holder_free(h);
}

void lk__holders_thread_ended(void *first)
{
  lk_holder *h = first;

  if (lk__driver_in_child(&h->client->driver))
    return;
  int cancelling = lk__sync_hold_cancel();

  while (h != NULL) {
    lk_holder *next = h->next;

    holder_retire(h);
    h = next;
  }
  lk__sync_restore_cancel(cancelling);
}

/* ---- the thread of the handle -------------------------------------------- */

static void holder_set_doubt(lk_holder *h, bool doubt)
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
static void holder_store(lk_holder *h, int64_t sure_ms, int64_t until_ms)
{
  atomic_store_explicit(&h->sure_ms, sure_ms, memory_order_release);
  atomic_store_explicit(&h->until_ms, until_ms, memory_order_release);
  holder_set_doubt(h, sure_ms == INT64_MIN);
  lk__holder_check_wait(h);
}

void lk__holder_set_lost(lk_holder *h)
{
  holder_store(h, INT64_MIN, INT64_MIN);
}

void lk__holder_publish(lk_holder *h)
{
  int64_t until = lk_lock_deadline(h->handle);
  bool sure = lk_lock_get_state(h->handle) == LK_LOCK_HELD;

  holder_store(h, sure ? until : INT64_MIN, until);
}

void lk__holders_publish(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->holders);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_holder *h = LK_OWNER(l, lk_holder, link);

    if (!lk__holder_is_lost(h))
      lk__holder_publish(h);
  }
}

static void holder_notify(const lk_holder *h, const lk_lock_event *event)
{
  lk_sync_lock *l = atomic_load(&h->lock);

  if (l->on_event != NULL)
    l->on_event(l, event, h->token, l->arg);
}

void lk__holder_on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  lk_holder *h = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_HELD: lk__holder_publish(h); break;
  case LK_LOCK_EVENT_LOST: lk__holder_set_lost(h); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
  holder_notify(h, event);
}

void lk__holder_remove(lk_holder *h)
{
  lk__safe_list_remove(&h->client->holders, &h->link);
}

void lk__holders_close(lk_sync_client *c)
{
  const lk_lock_event lost = {.type = LK_LOCK_EVENT_LOST, .err = LK_ERR_CLOSED};
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->holders);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_holder *h = LK_OWNER(l, lk_holder, link);

    if (!lk__holder_is_lost(h)) {
      lk__holder_set_lost(h);
      holder_notify(h, &lost);
    }
    lk__holder_free_lock(h);
  }
}

void lk__holders_free(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->holders);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_holder *h = LK_OWNER(l, lk_holder, link);

    lk__holder_remove(h);
    holder_free(h);
  }
}
