/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/thread_lock.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the thread that holds ----------------------------------------------- */

static void thread_lock_free(lk_thread_lock *h)
{
  if (h->fd >= 0)
    close(h->fd);
  lk__mem_free(&h->client->mem, h);
}

lk_thread_lock *lk__thread_lock_find(const lk_sync_lock *l)
{
  lk_thread_lock *h = pthread_getspecific(l->client->held);

  while (h != NULL && atomic_load(&h->lock) != l)
    h = h->next;
  return h;
}

static void begin_retire(lk_task *t)
{
  lk_thread_lock *h = LK_OWNER(t, lk_thread_lock, retire);

  lk__thread_lock_remove(h);
  lk__thread_lock_free_recipe(h);
  thread_lock_free(h);
}

/* If the thread of the handle ends, lk__thread_locks_free() frees it. */
static void thread_lock_retire(lk_thread_lock *h)
{
  h->retire.begin = begin_retire;
  (void)lk__sync_post(h->client, &h->retire);
}

/* Retire those whose lock was freed meanwhile. Only the thread itself may
   change its list. */
static lk_thread_lock *thread_locks_without_freed(lk_thread_lock *first)
{
  lk_thread_lock **at = &first;

  while (*at != NULL) {
    lk_thread_lock *h = *at;

    if (atomic_load(&h->lock) != NULL) {
      at = &h->next;
    } else {
      *at = h->next;
      thread_lock_retire(h);
    }
  }
  return first;
}

lk_thread_lock *lk__thread_lock_new(lk_sync_lock *l)
{
  lk_sync_client *c = l->client;
  lk_thread_lock *h = lk__mem_new(&c->mem, sizeof *h);

  if (h == NULL)
    return NULL;
  h->client = c;
  atomic_init(&h->lock, l);
  atomic_init(&h->sure_ms, INT64_MIN);
  atomic_init(&h->until_ms, INT64_MIN);
  h->fd = -1;
  lk__list_init(&h->link);
  h->next = thread_locks_without_freed(pthread_getspecific(c->held));
  if (pthread_setspecific(c->held, h) == 0)
    return h;
  /* No memory, which only the first thread lock of a thread needs. */
  thread_lock_free(h);
  return NULL;
}

/* With an empty list, no destructor runs when the thread ends. Setting a key
   that was set before cannot fail. */
static void thread_lock_unlist(lk_thread_lock *h)
{
  lk_thread_lock *first = pthread_getspecific(h->client->held);
  lk_thread_lock **at = &first;

  while (*at != h)
    at = &(*at)->next;
  *at = h->next;
  (void)pthread_setspecific(h->client->held, first);
}

void lk__thread_lock_release(lk_thread_lock *h)
{
  lk_sync_client *c = h->client;
  int cancelling = lk__sync_hold_cancel();

  thread_lock_unlist(h);
  pthread_mutex_lock(&c->mutex);
  if (h->fd >= 0)
    close(h->fd);
  h->fd = -1;
  pthread_mutex_unlock(&c->mutex);
  thread_lock_retire(h);
  lk__sync_restore_cancel(cancelling);
}

void lk__thread_lock_delete(lk_thread_lock *h)
{
  thread_lock_unlist(h);
  thread_lock_free(h);
}

void lk__thread_locks_thread_ended(void *first)
{
  lk_thread_lock *h = first;

  if (lk__driver_in_child(&h->client->driver))
    return;
  int cancelling = lk__sync_hold_cancel();

  while (h != NULL) {
    lk_thread_lock *next = h->next;

    thread_lock_retire(h);
    h = next;
  }
  lk__sync_restore_cancel(cancelling);
}

/* ---- the thread of the handle -------------------------------------------- */

static void thread_lock_set_doubt(lk_thread_lock *h, bool doubt)
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
static void thread_lock_store(lk_thread_lock *h, int64_t sure_ms,
                              int64_t until_ms)
{
  atomic_store_explicit(&h->sure_ms, sure_ms, memory_order_release);
  atomic_store_explicit(&h->until_ms, until_ms, memory_order_release);
  thread_lock_set_doubt(h, sure_ms == INT64_MIN);
  lk__thread_lock_check_wait(h);
}

void lk__thread_lock_set_lost(lk_thread_lock *h)
{
  thread_lock_store(h, INT64_MIN, INT64_MIN);
}

void lk__thread_lock_publish(lk_thread_lock *h)
{
  int64_t until = lk_lock_deadline(h->recipe);
  bool sure = lk_lock_get_state(h->recipe) == LK_LOCK_HELD;

  thread_lock_store(h, sure ? until : INT64_MIN, until);
}

void lk__thread_locks_publish(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->thread_locks);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_thread_lock *h = LK_OWNER(l, lk_thread_lock, link);

    if (!lk__thread_lock_is_lost(h))
      lk__thread_lock_publish(h);
  }
}

static void thread_lock_notify(const lk_thread_lock *h,
                               const lk_lock_event *event)
{
  lk_sync_lock *l = atomic_load(&h->lock);

  if (l->on_event != NULL)
    l->on_event(l, event, h->token, l->arg);
}

void lk__thread_lock_on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  lk_thread_lock *h = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_UNSURE:
  case LK_LOCK_EVENT_HELD: lk__thread_lock_publish(h); break;
  case LK_LOCK_EVENT_LOST: lk__thread_lock_set_lost(h); break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
  thread_lock_notify(h, event);
}

void lk__thread_lock_remove(lk_thread_lock *h)
{
  lk__safe_list_remove(&h->client->thread_locks, &h->link);
}

void lk__thread_locks_close(lk_sync_client *c)
{
  const lk_lock_event lost = {.type = LK_LOCK_EVENT_LOST, .err = LK_ERR_CLOSED};
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->thread_locks);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_thread_lock *h = LK_OWNER(l, lk_thread_lock, link);

    if (!lk__thread_lock_is_lost(h)) {
      lk__thread_lock_set_lost(h);
      thread_lock_notify(h, &lost);
    }
    lk__thread_lock_free_recipe(h);
  }
}

void lk__thread_locks_free(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->thread_locks);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_thread_lock *h = LK_OWNER(l, lk_thread_lock, link);

    lk__thread_lock_remove(h);
    thread_lock_free(h);
  }
}
