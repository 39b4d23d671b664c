/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/makers.h"

#include <latchkey/rwlock.h>

#include <stdlib.h>

/* What is made and freed for each kind of lock. */

static const char *path_of(const sim_handle *h, size_t seat)
{
  return h->process->world->locks[h->seats[seat].lock_at];
}

static int make_mutex(sim_handle *h, const lk_lock_config *config)
{
  return lk_lock_new(&h->lock, h->process->keeper, path_of(h, 0), config);
}

/* `h` is the side of writers. */
static int make_rwlock(sim_handle *h, const lk_lock_config *config)
{
  int err =
      lk_rwlock_new(&h->rwlock, h->process->keeper, path_of(h, 0), config);

  if (err != 0)
    return err;
  h->other->rwlock = h->rwlock;
  h->other->seats[0].shares = true;
  h->lock = lk_rwlock_write(h->rwlock);
  h->other->lock = lk_rwlock_read(h->rwlock);
  return 0;
}

static int (*const makers[SIM_NKINDS])(sim_handle *h,
                                       const lk_lock_config *config) = {
    [SIM_MUTEX] = make_mutex, [SIM_RWLOCK] = make_rwlock};

void sim_make_lock(sim_handle *h, const lk_lock_config *config)
{
  if (makers[h->kind](h, config) != 0)
    abort();
}

void sim_free_lock(sim_handle *h)
{
  if (h->kind == SIM_RWLOCK)
    lk_rwlock_free(h->rwlock);
  else
    lk_lock_free(h->lock);
}
