/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/rwlock_side.h"

/** The read-write lock of one thread, which has two sides. For the thread of
    the handle. */
typedef struct lk_thread_rwlock {
  lk_rwlock *rw;
  struct lk_lock_owner *sides[2]; /**< read, write; NULL: this thread does not
                                 use that side */
} lk_thread_rwlock;

static bool lock_owner_is_write_side(const lk_lock_owner *h)
{
  return atomic_load(&h->lock)->kind == LK_KIND_WRITE;
}

static void on_side_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  const lk_thread_rwlock *p = arg;
  lk_lock_owner *h = p->sides[l == lk_rwlock_write_side(p->rw)];

  if (h != NULL)
    lk__lock_owner_on_event(l, event, h);
}

static int thread_rwlock_new(lk_thread_rwlock **out, const lk_sync_lock *l)
{
  lk_thread_rwlock *p = lk__mem_new(&l->client->mem, sizeof *p);
  lk_lock_config how = l->config;

  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  how.on_event = on_side_event;
  how.arg = p;
  int err = lk_rwlock_new(&p->rw, l->client->client, l->path, &how);

  if (err != 0)
    lk__mem_free(&l->client->mem, p);
  else
    *out = p;
  return err;
}

int lk__rwlock_side_make(lk_lock_owner *h)
{
  const lk_lock_owner *other = h->partner;
  bool write = lock_owner_is_write_side(h);
  int err = 0;

  if (other != NULL && other->pair != NULL)
    h->pair = other->pair;
  else
    err = thread_rwlock_new(&h->pair, atomic_load(&h->lock));
  if (err != 0)
    return err;
  h->pair->sides[write] = h;
  h->recipe = write ? lk_rwlock_write_side(h->pair->rw)
                    : lk_rwlock_read_side(h->pair->rw);
  return 0;
}

/* lk_lock_reset() completes the call that waits, whose lock owner may be freed
 * then. */
void lk__rwlock_side_free(lk_lock_owner *h, lk_lock *recipe)
{
  lk_sync_client *c = h->client;
  lk_thread_rwlock *p = h->pair;

  h->pair = NULL;
  p->sides[p->sides[1] == h] = NULL;
  lk_lock_reset(recipe);
  if (p->sides[0] != NULL || p->sides[1] != NULL)
    return;
  lk_rwlock_free(p->rw);
  lk__mem_free(&c->mem, p);
}
