/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owners.h"

#include "sync/call_entry.h"
#include "sync/recipe.h"

/* ---- of one thread ------------------------------------------------------- */

static void lock_owner_free(lk_lock_owner *owner)
{
  lk__flag_fd_close(&owner->doubt_fd);
  lk__mem_free(&owner->client->mem, owner);
}

lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l)
{
  lk_lock_owner *owner = pthread_getspecific(l->client->owners_key);

  while (owner != NULL && atomic_load(&owner->lock) != l)
    owner = owner->next;
  return owner;
}

static void begin_retire(lk_task *t)
{
  lk_lock_owner *owner = LK_OWNER(t, lk_lock_owner, retire);

  lk__lock_owner_remove(owner);
  lk__recipe_free(owner);
  lock_owner_free(owner);
}

/* Have the thread of the handle release the lock and free the lock owner. If
   that thread has ended, lk__lock_owners_free() frees the lock owner. */
static void lock_owner_retire(lk_lock_owner *owner)
{
  owner->retire.begin = begin_retire;
  (void)lk__task_post(owner->client, &owner->retire);
}

/* Remove the lock owners whose lock was freed from the list that begins with
   `first`, and retire them. Returns the first of the list then. This is not
   done when the lock is freed, because only a thread itself may change its
   list. */
static lk_lock_owner *lock_owners_drop_freed_locks(lk_lock_owner *first)
{
  lk_lock_owner **at = &first;

  while (*at != NULL) {
    lk_lock_owner *owner = *at;

    if (atomic_load(&owner->lock) != NULL) {
      at = &owner->next;
    } else {
      *at = owner->next;
      lock_owner_retire(owner);
    }
  }
  return first;
}

lk_lock_owner *lk__lock_owner_new(lk_sync_lock *l)
{
  lk_sync_client *c = l->client;
  lk_lock_owner *owner = lk__mem_new(&c->mem, sizeof *owner);

  if (owner == NULL)
    return NULL;
  owner->client = c;
  atomic_init(&owner->lock, l);
  atomic_init(&owner->sure_until_ms, LK_NOT_SURE);
  atomic_init(&owner->lease_deadline_ms, LK_NOT_HELD);
  owner->doubt_fd = LK_FLAG_FD_NONE;
  lk__list_init(&owner->link);
  owner->next =
      lock_owners_drop_freed_locks(pthread_getspecific(c->owners_key));
  if (pthread_setspecific(c->owners_key, owner) == 0)
    return owner;
  /* pthread_setspecific() needs memory for the first lock owner of a thread. */
  lock_owner_free(owner);
  return NULL;
}

static void lock_owner_unlist(lk_lock_owner *owner)
{
  lk_lock_owner *first = pthread_getspecific(owner->client->owners_key);
  lk_lock_owner **at = &first;

  while (*at != owner)
    at = &(*at)->next;
  *at = owner->next;
  /* This cannot fail, since the thread has set the key before. If the list is
     empty now, no destructor runs when the thread ends. */
  (void)pthread_setspecific(owner->client->owners_key, first);
}

void lk__lock_owner_release(lk_lock_owner *owner)
{
  lk_sync_client *c = owner->client;
  int cancel_state = lk__sync_disable_cancel();

  lock_owner_unlist(owner);
  pthread_mutex_lock(&c->mutex);
  lk__flag_fd_close(&owner->doubt_fd);
  pthread_mutex_unlock(&c->mutex);
  lock_owner_retire(owner);
  lk__sync_restore_cancel(cancel_state);
}

void lk__lock_owner_delete(lk_lock_owner *owner)
{
  lock_owner_unlist(owner);
  lock_owner_free(owner);
}

void lk__lock_owners_thread_ended(void *first)
{
  lk_lock_owner *owner = first;

  if (lk__driver_in_child(&owner->client->driver))
    return;
  int cancel_state = lk__sync_disable_cancel();

  while (owner != NULL) {
    lk_lock_owner *next = owner->next;

    lock_owner_retire(owner);
    owner = next;
  }
  lk__sync_restore_cancel(cancel_state);
}

/* ---- of the handle, for its thread --------------------------------------- */

void lk__lock_owners_publish(lk_sync_client *c)
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (!lk__lock_owner_is_lost(owner))
      lk__lock_owner_publish(owner);
  }
}

void lk__lock_owner_remove(lk_lock_owner *owner)
{
  lk__safe_list_remove(&owner->client->lock_owners, &owner->link);
}

void lk__lock_owners_close(lk_sync_client *c)
{
  const lk_lock_event lost = {.type = LK_LOCK_EVENT_LOST, .err = LK_ERR_CLOSED};
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (!lk__lock_owner_is_lost(owner)) {
      lk__lock_owner_set_lost(owner);
      lk__lock_owner_notify(owner, &lost);
    }
    lk__recipe_free(owner);
  }
}

void lk__lock_owners_free(lk_sync_client *c)
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    lk__lock_owner_remove(owner);
    lock_owner_free(owner);
  }
}
