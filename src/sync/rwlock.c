/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call_entry.h"
#include "sync/lock_constructors.h"
#include "sync/lock_destructor.h"
#include "sync/lock_owners.h"

/* A read-write lock for threads has one lk_sync_lock for each of its sides.
   Each thread that uses a side has its own lk_rwlock, see rwlock_side.c. */

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

/* Either both calls of lk__sync_lock_end_owners() are refused, or none. */
void lk_sync_rwlock_free(lk_sync_rwlock *rw)
{
  if (rw != NULL && lk__sync_lock_end_owners(rw->read) &&
      lk__sync_lock_end_owners(rw->write))
    rwlock_destroy(rw);
}

lk_sync_lock *lk_sync_rwlock_read_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : rw->read;
}

lk_sync_lock *lk_sync_rwlock_write_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : rw->write;
}

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
