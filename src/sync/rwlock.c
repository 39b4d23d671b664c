/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/rwlock.h"

#include "sync/call.h"
#include "sync/lock.h"
#include "sync/lock_owner.h"

/* ---- creation ------------------------------------------------------------ */

struct lk_sync_rwlock {
  lk_sync_lock *read;
  lk_sync_lock *write;
};

/* Accepts a read-write lock whose write side was not made. */
static void rwlock_destroy(lk_sync_rwlock *rw)
{
  lk_mem mem = rw->read->client->mem;

  if (rw->write != NULL)
    lk__sync_lock_destroy(rw->write);
  lk__sync_lock_destroy(rw->read);
  lk__mem_free(&mem, rw);
}

int lk_sync_rwlock_new(lk_sync_rwlock **out, lk_sync_client *c,
                       const char *path, const lk_sync_lock_config *config)
{
  lk_sync_lock *read;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lk__sync_lock_make(&read, c, LK_KIND_READ, path, config);

  if (err == 0)
    err = lk__sync_lock_check_or_destroy(&read);
  if (err != 0)
    return err;
  lk_sync_rwlock *rw = lk__mem_new(&c->mem, sizeof *rw);

  if (rw == NULL) {
    lk__sync_lock_destroy(read);
    return LK_ERR_NO_MEMORY;
  }
  rw->read = read;
  /* The write side has the options of the read side, which were checked. */
  err = lk__sync_lock_make(&rw->write, c, LK_KIND_WRITE, path, config);
  if (err != 0) {
    rwlock_destroy(rw);
    return err;
  }
  rw->read->partner = rw->write;
  rw->write->partner = rw->read;
  *out = rw;
  return 0;
}

/* ---- queries ------------------------------------------------------------- */

lk_sync_lock *lk_sync_rwlock_read_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : rw->read;
}

lk_sync_lock *lk_sync_rwlock_write_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : rw->write;
}

/* ---- downgrade ----------------------------------------------------------- */

int lk_sync_rwlock_downgrade(lk_sync_rwlock *rw, const lk_sync_call *call)
{
  if (rw == NULL)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk__sync_refusal(rw->write->client);

  if (err != 0)
    return err;
  const lk_lock_owner *owner = lk__lock_owner_find(rw->write);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  if (lk__lock_owner_is_lost(owner))
    return lk_sync_lock_release(rw->write); /* returns LK_ERR_LOST */
  err = lk_sync_lock_acquire(rw->read, call);
  if (err != 0)
    return err;
  err = lk_sync_lock_release(rw->write);
  /* The write side was lost meanwhile: another client may have written. */
  if (err == LK_ERR_LOST)
    (void)lk_sync_lock_release(rw->read);
  return err;
}

/* ---- the sides of one thread --------------------------------------------- */

/* A lock owner is one thread as the user of an lk_sync_lock: `owner->lock`,
   which all threads share. `owner->inner` is the lk_lock of this thread. */

/** The lk_rwlock of one calling thread. Only the thread of the handle, which
    runs the client, accesses it. */
typedef struct lk_thread_rwlock {
  lk_rwlock *rw;
  /* The lock owner of each side; NULL: this thread does not use that side. */
  lk_lock_owner *read_owner;
  lk_lock_owner *write_owner;
} lk_thread_rwlock;

static bool lock_owner_is_write_side(const lk_lock_owner *owner)
{
  return atomic_load(&owner->lock)->kind == LK_KIND_WRITE;
}

static void on_side_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  const lk_thread_rwlock *p = arg;
  bool is_write_side = l == lk_rwlock_write_side(p->rw);
  lk_lock_owner *owner = is_write_side ? p->write_owner : p->read_owner;

  if (owner != NULL)
    lk__lock_owner_on_event(l, event, owner);
}

static int thread_rwlock_new(lk_thread_rwlock **out, const lk_sync_lock *l)
{
  lk_thread_rwlock *p = lk__mem_new(&l->client->mem, sizeof *p);
  lk_lock_config config = l->config;

  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  config.on_event = on_side_event;
  config.arg = p;
  int err = lk_rwlock_new(&p->rw, l->client->client, l->path, &config);

  if (err != 0)
    lk__mem_free(&l->client->mem, p);
  else
    *out = p;
  return err;
}

int lk__rwlock_side_make(lk_lock_owner *owner)
{
  const lk_lock_owner *other_side = owner->partner;
  int err = 0;

  if (other_side != NULL && other_side->thread_rwlock != NULL)
    owner->thread_rwlock = other_side->thread_rwlock;
  else
    err = thread_rwlock_new(&owner->thread_rwlock, atomic_load(&owner->lock));
  if (err != 0)
    return err;
  lk_thread_rwlock *p = owner->thread_rwlock;

  if (lock_owner_is_write_side(owner)) {
    p->write_owner = owner;
    owner->inner = lk_rwlock_write_side(p->rw);
  } else {
    p->read_owner = owner;
    owner->inner = lk_rwlock_read_side(p->rw);
  }
  return 0;
}

/* If a call waits for this side, lk_lock_reset() completes it through the
   callback of that call. Its thread may then free `owner`. So `owner` is
   removed from `p` before the reset, and not used after it: on_side_event()
   drops later events of this side. */
void lk__rwlock_side_free(lk_lock_owner *owner, lk_lock *inner)
{
  lk_sync_client *c = owner->client;
  lk_thread_rwlock *p = owner->thread_rwlock;

  owner->thread_rwlock = NULL;
  if (p->write_owner == owner)
    p->write_owner = NULL;
  else
    p->read_owner = NULL;
  lk_lock_reset(inner);
  if (p->read_owner != NULL || p->write_owner != NULL)
    return;
  lk_rwlock_free(p->rw);
  lk__mem_free(&c->mem, p);
}

/* ---- end ----------------------------------------------------------------- */

/* Either both calls of lk__sync_lock_end_owners() are refused, or none. */
void lk_sync_rwlock_free(lk_sync_rwlock *rw)
{
  if (rw != NULL && lk__sync_lock_end_owners(rw->read) &&
      lk__sync_lock_end_owners(rw->write))
    rwlock_destroy(rw);
}
