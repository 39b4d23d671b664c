/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call.h"
#include "sync/lock.h"

/* A read-write lock for threads: an lk_rwlock, and a lock for each side. */
struct lk_sync_rwlock {
  lk_sync_lock read;
  lk_sync_lock write;
  lk_rwlock *inner; /* for the thread of the handle */
};

/* ---- creation ------------------------------------------------------------ */

/** A call that the thread of the handle completes at once. */
typedef struct rwlock_call {
  lk_blocking_call call;
  lk_sync_rwlock *rw;
  const char *path;
  lk_lock_config config;
  const lk_sync_rwlock *original; /**< of a clone; or NULL */
} rwlock_call;

static void on_side_event(lk_lock *inner, const lk_lock_event *event, void *arg)
{
  lk_sync_rwlock *rw = arg;

  lk__sync_lock_on_event(inner == rw->write.inner ? &rw->write : &rw->read,
                         event);
}

static int make_inner(const rwlock_call *n)
{
  lk_sync_rwlock *rw = n->rw;

  if (n->original == NULL)
    return lk_rwlock_new(&rw->inner, n->call.client->client, n->path,
                         &n->config);
  return n->original->inner == NULL
             ? LK_ERR_CLOSED
             : lk_rwlock_clone(&rw->inner, n->original->inner, on_side_event,
                               rw);
}

static void begin_new(lk_blocking_call *b)
{
  const rwlock_call *n = LK_OWNER(b, rwlock_call, call);
  int err = lk__sync_lock_refusal(b->client);

  if (err == 0)
    err = make_inner(n);
  if (err == 0) {
    n->rw->read.inner = lk_rwlock_read_side(n->rw->inner);
    n->rw->write.inner = lk_rwlock_write_side(n->rw->inner);
  }
  lk__blocking_call_complete(b, err);
}

static int rwlock_make(lk_sync_rwlock **out, lk_sync_client *c, rwlock_call *n,
                       lk_sync_lock_event_cb on_event, void *arg)
{
  lk_sync_rwlock *rw = lk__mem_new(&c->mem, sizeof *rw);

  if (rw == NULL)
    return LK_ERR_NO_MEMORY;
  lk__sync_lock_init(&rw->read, c, on_event, arg);
  lk__sync_lock_init(&rw->write, c, on_event, arg);
  rw->read.other_side = &rw->write;
  rw->write.other_side = &rw->read;
  n->rw = rw;
  n->config.on_event = on_side_event;
  n->config.arg = rw;
  int err = lk__sync_lock_make(&n->call, c, begin_new);

  if (err != 0)
    lk__mem_free(&c->mem, rw);
  else
    *out = rw;
  return err;
}

int lk_sync_rwlock_new(lk_sync_rwlock **out, lk_sync_client *c,
                       const char *path, const lk_lock_config *config,
                       lk_sync_lock_event_cb on_event, void *arg)
{
  rwlock_call n = {.path = path};

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lk__sync_lock_config_copy(c, &n.config, config);

  if (err == 0 && path == NULL)
    err = LK_ERR_BAD_PATH;
  return err != 0 ? err : rwlock_make(out, c, &n, on_event, arg);
}

int lk_sync_rwlock_clone(lk_sync_rwlock **out, lk_sync_rwlock *rw, void *arg)
{
  rwlock_call n = {.original = rw};
  int cancel_state;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (rw == NULL)
    return LK_ERR_BAD_ARGUMENT;
  int err = lk__sync_lock_enter(&rw->read, &cancel_state);

  if (err == LK_ERR_STATE) /* this is the thread of the handle: no free runs */
    return rwlock_make(out, rw->read.client, &n, rw->read.on_event, arg);
  if (err != 0)
    return err;
  err = rwlock_make(out, rw->read.client, &n, rw->read.on_event, arg);
  lk__sync_lock_leave(&rw->read, cancel_state);
  return err;
}

/* ---- queries ------------------------------------------------------------- */

lk_sync_lock *lk_sync_rwlock_read_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : &rw->read;
}

lk_sync_lock *lk_sync_rwlock_write_side(lk_sync_rwlock *rw)
{
  return rw == NULL ? NULL : &rw->write;
}

/* ---- downgrade ----------------------------------------------------------- */

/* The read side belongs to the thread that acquired the write side, whichever
   thread this is. Another thread may release the write side meanwhile, or it
   may be lost: then another owner may have written, and the read side is
   released, too. */
static int rwlock_downgrade(lk_sync_rwlock *rw, const lk_sync_call *call)
{
  uint64_t thread;

  if (!lk__sync_lock_is_acquired(&rw->write, &thread))
    return LK_ERR_NOT_HELD;
  if (lk_sync_lock_get_state(&rw->write) == LK_LOCK_LOST) {
    (void)lk_sync_lock_release(&rw->write);
    return LK_ERR_LOST;
  }
  int err = lk__sync_lock_acquire(&rw->read, thread, call, LK_ACQUIRE_WAIT);

  if (err == LK_ERR_LOST) { /* a read side that was acquired before */
    (void)lk_sync_lock_release(&rw->read);
    (void)lk_sync_lock_release(&rw->write);
  }
  if (err != 0)
    return err;
  err = lk_sync_lock_release(&rw->write);
  if (err != 0)
    (void)lk_sync_lock_release(&rw->read);
  return err;
}

int lk_sync_rwlock_downgrade(lk_sync_rwlock *rw, const lk_sync_call *call)
{
  int cancel_state;
  int err = lk__sync_lock_enter(rw == NULL ? NULL : &rw->write, &cancel_state);

  if (err != 0)
    return err;
  err = rwlock_downgrade(rw, call);
  lk__sync_lock_leave(&rw->write, cancel_state);
  return err;
}

/* ---- end ----------------------------------------------------------------- */

static void begin_free(lk_blocking_call *b)
{
  lk_sync_rwlock *rw = LK_OWNER(b, rwlock_call, call)->rw;

  (void)lk__sync_lock_remove(&rw->read);
  (void)lk__sync_lock_remove(&rw->write);
  lk_rwlock_free(rw->inner);
  rw->inner = NULL;
  lk__sync_lock_check_waits(&rw->read);
  lk__sync_lock_check_waits(&rw->write);
  lk__blocking_call_complete(b, 0);
}

int lk_sync_rwlock_free(lk_sync_rwlock *rw)
{
  rwlock_call n = {.rw = rw};

  if (rw == NULL)
    return 0;
  lk_sync_client *c = rw->read.client;
  int err = lk__blocking_call_do(&n.call, c, begin_free);

  if (err != 0)
    return lk__sync_free_result(c, err, "lk_sync_rwlock_free");
  lk__sync_lock_deinit(&rw->read);
  lk__sync_lock_deinit(&rw->write);
  lk__mem_free(&c->mem, rw);
  return 0;
}
