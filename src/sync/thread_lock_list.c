/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/thread_lock_list.h"

#include <unistd.h>

#include "sync/call_entry.h"
#include "sync/recipe.h"

/* ---- of one thread ------------------------------------------------------- */

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
  lk__recipe_free(h);
  thread_lock_free(h);
}

/* If the thread of the handle ends, lk__thread_locks_free() frees it. */
static void thread_lock_retire(lk_thread_lock *h)
{
  h->retire.begin = begin_retire;
  (void)lk__task_post(h->client, &h->retire);
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

/* ---- of the handle, for its thread --------------------------------------- */

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
      lk__thread_lock_notify(h, &lost);
    }
    lk__recipe_free(h);
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
