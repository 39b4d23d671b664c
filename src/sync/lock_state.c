/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call_entry.h"
#include "sync/lock_owners.h"

/* Whether this thread holds a lock, until when, and the tokens of its grant. */

/* The lock owner of this thread. NULL: the thread has none, or this is a child
   process, where no thread holds. */
static const lk_lock_owner *current_lock_owner(const lk_sync_lock *l)
{
  return l == NULL || lk__driver_in_child(&l->client->driver)
             ? NULL
             : lk__lock_owner_find(l);
}

/* The clock is read last: a pause of the thread before that can only make the
   result false. A doubt that was stored before this call is seen, since one
   variable holds both deadline and doubt. */
bool lk_sync_lock_ok(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  if (owner == NULL)
    return false;
  int64_t sure_until_ms =
      atomic_load_explicit(&owner->sure_until_ms, memory_order_acquire);

  return sure_until_ms != LK_NOT_SURE &&
         lk__driver_clock(&l->client->driver) < sure_until_ms;
}

int64_t lk_sync_lock_deadline(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL ? LK_NOT_HELD : atomic_load(&owner->lease_deadline_ms);
}

uint64_t lk_sync_lock_token(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL || lk__lock_owner_is_lost(owner) ? 0 : owner->token;
}

uint64_t lk_sync_lock_handoffs(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL || lk__lock_owner_is_lost(owner) ? 0 : owner->handoffs;
}

lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  if (owner == NULL)
    return LK_LOCK_IDLE;
  if (lk__lock_owner_is_lost(owner))
    return LK_LOCK_LOST;
  return atomic_load(&owner->sure_until_ms) == LK_NOT_SURE ? LK_LOCK_UNSURE
                                                           : LK_LOCK_HELD;
}

size_t lk_sync_lock_count(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL ? 0 : owner->count;
}

int lk_sync_lock_fd(lk_sync_lock *l)
{
  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  pthread_mutex_lock(&owner->client->mutex);
  if (owner->doubt_fd.read_fd < 0) {
    /* A doubt that arises now is not missed: `sure_until_ms` is stored first,
       and then lock_owner_set_doubt() looks for the descriptor, under the
       mutex. */
    bool doubt = atomic_load(&owner->sure_until_ms) == LK_NOT_SURE;

    if (lk__flag_fd_open(&owner->doubt_fd) == 0 && doubt)
      lk__flag_fd_set(&owner->doubt_fd);
  }
  int fd = owner->doubt_fd.read_fd;

  pthread_mutex_unlock(&owner->client->mutex);
  return fd >= 0 ? fd : LK_ERR_SYSTEM;
}

/** Reads the token of the member with `path` on the thread of the handle. */
typedef struct token_call {
  lk_blocking_call call;
  const lk_lock_owner *lock_owner;
  const char *path;
  uint64_t token; /**< the result */
} token_call;

static void begin_token(lk_blocking_call *b)
{
  token_call *q = LK_OWNER(b, token_call, call);

  if (q->lock_owner->recipe != NULL)
    q->token = lk_multilock_token(q->lock_owner->recipe, q->path);
  lk__blocking_call_complete(b, 0);
}

uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path)
{
  token_call q = {.path = path};

  if (l == NULL || path == NULL || l->kind != LK_KIND_MULTILOCK ||
      lk__sync_refusal(l->client) != 0)
    return 0;
  q.lock_owner = lk__lock_owner_find(l);
  if (q.lock_owner != NULL && !lk__lock_owner_is_lost(q.lock_owner))
    (void)lk__blocking_call_do(&q.call, l->client, begin_token);
  return q.token; /* 0 unless begin_token() ran */
}
