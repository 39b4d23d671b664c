/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock_owner.h"

#include "sync/call.h"
#include "sync/lock.h"
#include "sync/rwlock.h"

/* ---- the inner lock ------------------------------------------------------ */

/* Each thread that uses a lock has an lk_lock of its own, and so has each
   candidate. The functions here make it, by the lock's kind. */

static int inner_lock_new(const lk_sync_lock *l, lk_lock **out,
                          const lk_lock_config *config)
{
  lk_client *c = l->client->client;

  switch (l->kind) {
  case LK_KIND_MUTEX: return lk_lock_new(out, c, l->path, config);
  case LK_KIND_SEMAPHORE:
    return lk_semaphore_new(out, c, l->path, config, &l->semaphore);
  case LK_KIND_MULTILOCK:
    return lk_multilock_new(out, c, l->members, l->member_count, config,
                            &l->multilock);
  case LK_KIND_SINGLE:
    return lk_single_new(out, c, l->path, config, &l->single);
  case LK_KIND_READ: /* the sides of a read-write lock: rwlock.c */
  case LK_KIND_WRITE: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

int lk__lock_owner_make_inner(lk_lock_owner *owner)
{
  const lk_sync_lock *l = atomic_load(&owner->lock);
  lk_lock_config config = l->config;

  bool is_side = l->partner != NULL; /* of a read-write lock */

  if (is_side)
    return lk__rwlock_side_make(owner);
  config.on_event = lk__lock_owner_on_event;
  config.arg = owner;
  return inner_lock_new(l, &owner->inner, &config);
}

void lk__lock_owner_free_inner(lk_lock_owner *owner)
{
  lk_lock *inner = owner->inner;

  owner->inner = NULL;
  if (owner->thread_rwlock != NULL)
    lk__rwlock_side_free(owner, inner);
  else
    lk_lock_free(inner);
}

int lk__inner_lock_new(lk_inner_lock *out, const lk_sync_lock *l,
                       const lk_lock_config *config)
{
  bool is_side = l->kind == LK_KIND_READ || l->kind == LK_KIND_WRITE;

  *out = (lk_inner_lock){.lock = NULL};
  if (!is_side)
    return inner_lock_new(l, &out->lock, config);
  int err = lk_rwlock_new(&out->rw, l->client->client, l->path, config);

  if (err == 0)
    out->lock = l->kind == LK_KIND_READ ? lk_rwlock_read_side(out->rw)
                                        : lk_rwlock_write_side(out->rw);
  return err;
}

void lk__inner_lock_free(lk_inner_lock *lock)
{
  if (lock->rw != NULL)
    lk_rwlock_free(lock->rw);
  else
    lk_lock_free(lock->lock);
  *lock = (lk_inner_lock){.lock = NULL};
}

int lk__inner_lock_check_options(const lk_sync_lock *l)
{
  lk_inner_lock lock;
  int err = lk__inner_lock_new(&lock, l, &l->config);

  lk__inner_lock_free(&lock);
  return err;
}

/* ---- creation ------------------------------------------------------------ */

static void lock_owner_free(lk_lock_owner *owner)
{
  lk__flag_fd_close(&owner->doubt_fd);
  lk__mem_free(&owner->client->mem, owner);
}

static void begin_retire(lk_task *t)
{
  lk_lock_owner *owner = LK_OWNER(t, lk_lock_owner, retire);

  lk__lock_owner_remove(owner);
  lk__lock_owner_free_inner(owner);
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

lk_lock_owner *lk__lock_owner_find(const lk_sync_lock *l)
{
  lk_lock_owner *owner = pthread_getspecific(l->client->owners_key);

  while (owner != NULL && atomic_load(&owner->lock) != l)
    owner = owner->next;
  return owner;
}

/* ---- the state ----------------------------------------------------------- */

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
  int64_t lease_deadline_ms = lk_lock_deadline(owner->inner);
  bool sure = lk_lock_get_state(owner->inner) == LK_LOCK_HELD;

  lock_owner_store(owner, sure ? lease_deadline_ms : LK_NOT_SURE,
                   lease_deadline_ms);
}

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

/* ---- events -------------------------------------------------------------- */

/* Invoke the callback of the lock. */
static void lock_owner_notify(const lk_lock_owner *owner,
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
  lock_owner_notify(owner, event);
}

/* ---- end ----------------------------------------------------------------- */

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

void lk__lock_owner_remove(lk_lock_owner *owner)
{
  lk__safe_list_remove(&owner->client->lock_owners, &owner->link);
}

void lk__lock_owner_delete(lk_lock_owner *owner)
{
  lock_owner_unlist(owner);
  lock_owner_free(owner);
}

/* ---- the end of a thread ------------------------------------------------- */

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

/* ---- the end of a lock --------------------------------------------------- */

/** A call that ends all lock owners of `lock`. */
typedef struct end_call {
  lk_blocking_call call;
  lk_sync_lock *lock;
} end_call;

static void begin_end_owners(lk_blocking_call *b)
{
  lk_sync_lock *lock = LK_OWNER(b, end_call, call)->lock;
  lk_safe_iterator it;

  lock->freeing = true;
  lk__safe_iterator_begin(&it, &b->client->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (atomic_load(&owner->lock) == lock) {
      atomic_store(&owner->lock, NULL);
      lk__lock_owner_set_lost(owner);
      lk__lock_owner_free_inner(owner);
    }
  }
  lk__blocking_call_complete(b, 0);
}

bool lk__sync_lock_end_owners(lk_sync_lock *l)
{
  end_call end = {.lock = l};
  int err = lk__blocking_call_do(&end.call, l->client, begin_end_owners);

  if (err != 0)
    return false;
  lk__sync_await_calls(l->client, &l->calls_inside);
  return true;
}

/* ---- the end of the handle ----------------------------------------------- */

void lk__lock_owners_close(lk_sync_client *c)
{
  const lk_lock_event lost = {.type = LK_LOCK_EVENT_LOST, .err = LK_ERR_CLOSED};
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->lock_owners);
  for (lk_link *l; (l = lk__safe_iterator_next(&it)) != NULL;) {
    lk_lock_owner *owner = LK_OWNER(l, lk_lock_owner, link);

    if (!lk__lock_owner_is_lost(owner)) {
      lk__lock_owner_set_lost(owner);
      lock_owner_notify(owner, &lost);
    }
    lk__lock_owner_free_inner(owner);
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
