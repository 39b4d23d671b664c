/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"

#include <unistd.h>

#include "sync/call_entry.h"
#include "sync/recipe.h"

/* ---- of one thread ------------------------------------------------------- */

static void lock_owner_free(lk_lock_owner *h)
{
  if (h->fd >= 0)
    close(h->fd);
  lk__mem_free(&h->client->mem, h);
}

lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l)
{
  lk_lock_owner *h = pthread_getspecific(l->client->held);

  while (h != NULL && atomic_load(&h->lock) != l)
    h = h->next;
  return h;
}

static void begin_retire(lk_task *t)
{
  lk_lock_owner *h = LK_OWNER(t, lk_lock_owner, retire);

  lk__lock_owner_remove(h);
  lk__recipe_free(h);
  lock_owner_free(h);
}

/* If the thread of the handle ends, lk__lock_owners_free() frees it. */
static void lock_owner_retire(lk_lock_owner *h)
{
  h->retire.begin = begin_retire;
  (void)lk__task_post(h->client, &h->retire);
}

/* Retire those whose lock was freed meanwhile. Only the thread itself may
   change its list. */
static lk_lock_owner *lock_owners_without_freed(lk_lock_owner *first)
{
  lk_lock_owner **at = &first;

  while (*at != NULL) {
    lk_lock_owner *h = *at;

    if (atomic_load(&h->lock) != NULL) {
      at = &h->next;
    } else {
      *at = h->next;
      lock_owner_retire(h);
    }
  }
  return first;
}

lk_lock_owner *lk__lock_owner_new(lk_sync_lock *l)
{
  lk_sync_client *c = l->client;
  lk_lock_owner *h = lk__mem_new(&c->mem, sizeof *h);

  if (h == NULL)
    return NULL;
  h->client = c;
  atomic_init(&h->lock, l);
  atomic_init(&h->sure_ms, INT64_MIN);
  atomic_init(&h->until_ms, INT64_MIN);
  h->fd = -1;
  lk__list_init(&h->link);
  h->next = lock_owners_without_freed(pthread_getspecific(c->held));
  if (pthread_setspecific(c->held, h) == 0)
    return h;
  /* pthread_setspecific() needs memory for the first lock owner of a thread. */
  lock_owner_free(h);
  return NULL;
}

/* With an empty list, no destructor runs when the thread ends. Setting a key
   that was set before cannot fail. */
static void lock_owner_unlist(lk_lock_owner *h)
{
  lk_lock_owner *first = pthread_getspecific(h->client->held);
  lk_lock_owner **at = &first;

  while (*at != h)
    at = &(*at)->next;
  *at = h->next;
  (void)pthread_setspecific(h->client->held, first);
}

void lk__lock_owner_release(lk_lock_owner *h)
{
  lk_sync_client *c = h->client;
  int cancelling = lk__sync_hold_cancel();

  lock_owner_unlist(h);
  pthread_mutex_lock(&c->mutex);
  if (h->fd >= 0)
    close(h->fd);
  h->fd = -1;
  pthread_mutex_unlock(&c->mutex);
  lock_owner_retire(h);
  lk__sync_restore_cancel(cancelling);
}

void lk__lock_owner_delete(lk_lock_owner *h)
{
  lock_owner_unlist(h);
  lock_owner_free(h);
}

void lk__lock_owners_thread_ended(void *first)
{
  lk_lock_owner *h = first;

  if (lk__driver_in_child(&h->client->driver))
    return;
  int cancelling = lk__sync_hold_cancel();

  while (h != NULL) {
    lk_lock_owner *next = h->next;

    lock_owner_retire(h);
    h = next;
  }
  lk__sync_restore_cancel(cancelling);
}

/* ---- of the handle, for its thread --------------------------------------- */

void lk__lock_owners_publish(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_lock_owner *h = LK_OWNER(l, lk_lock_owner, link);

    if (!lk__lock_owner_is_lost(h))
      lk__lock_owner_publish(h);
  }
}

void lk__lock_owner_remove(lk_lock_owner *h)
{
  lk__safe_list_remove(&h->client->lock_owners, &h->link);
}

void lk__lock_owners_close(lk_sync_client *c)
{
  const lk_lock_event lost = {.type = LK_LOCK_EVENT_LOST, .err = LK_ERR_CLOSED};
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_lock_owner *h = LK_OWNER(l, lk_lock_owner, link);

    if (!lk__lock_owner_is_lost(h)) {
      lk__lock_owner_set_lost(h);
      lk__lock_owner_notify(h, &lost);
    }
    lk__recipe_free(h);
  }
}

void lk__lock_owners_free(lk_sync_client *c)
{
  lk_safe_iterator w;

  lk__safe_iterator_begin(&w, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    lk_lock_owner *h = LK_OWNER(l, lk_lock_owner, link);

    lk__lock_owner_remove(h);
    lock_owner_free(h);
  }
}
