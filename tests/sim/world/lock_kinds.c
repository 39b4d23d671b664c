/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/lock_kinds.h"

#include <latchkey/multilock.h>
#include <latchkey/semaphore.h>

#include <stdlib.h>

/* Makes and frees locks of each kind. */

static const char *path_of(const sim_handle *h, size_t place)
{
  return h->process->world->locks[h->places[place].lock_index];
}

enum { ONLY_PLACE = 0 }; /* of a lock with one node */

static int make_mutex(sim_handle *h, const lk_lock_config *config)
{
  return lk_lock_new(&h->lock, h->process->client, path_of(h, ONLY_PLACE),
                     config);
}

/* `h` is the handle of the write side. */
static int make_rwlock(sim_handle *h, const lk_lock_config *config)
{
  int err = lk_rwlock_new(&h->rwlock, h->process->client,
                          path_of(h, ONLY_PLACE), config);

  if (err != 0)
    return err;
  h->other->rwlock = h->rwlock;
  h->other->places[ONLY_PLACE].shares = true;
  h->lock = lk_rwlock_write_side(h->rwlock);
  h->other->lock = lk_rwlock_read_side(h->rwlock);
  return 0;
}

static int make_semaphore(sim_handle *h, const lk_lock_config *config)
{
  const sim_world *w = h->process->world;
  lk_semaphore_config options = {.size = sizeof options,
                                 .permits = w->permits,
                                 .take = h->permits,
                                 .limit_path =
                                     w->has_limit_node ? SIM_LIMIT : NULL};

  return lk_semaphore_new(&h->lock, h->process->client, SIM_SEMAPHORE_PATH,
                          config, &options);
}

static lk_multilock_side side_of(const sim_place *s)
{
  if (s->shares)
    return LK_MULTILOCK_READ;
  return s->writes ? LK_MULTILOCK_WRITE : LK_MULTILOCK_MUTEX;
}

/* All actors must take the locks in one order. If it is reversed, the
 * multi-lock keeps the configured order. Otherwise it sorts its members, so
 * their order in the configuration does not matter. */
static int make_multilock(sim_handle *h, const lk_lock_config *config)
{
  const sim_world *w = h->process->world;
  lk_multilock_part members[SIM_MOST_PLACES_IN_QUEUE];
  lk_multilock_config options = {.size = sizeof options,
                                 .keep_order = w->reversed};
  bool passed_backwards = h->backwards && !w->reversed;

  for (size_t i = 0; i < h->nplaces; i++) {
    size_t place = passed_backwards ? h->nplaces - 1 - i : i;

    members[i] = (lk_multilock_part){.path = path_of(h, place),
                                     .side = side_of(&h->places[place])};
  }
  return lk_multilock_new(&h->lock, h->process->client, members, h->nplaces,
                          config, &options);
}

static int (*const makers[SIM_NKINDS])(sim_handle *h,
                                       const lk_lock_config *config) = {
    [SIM_MUTEX] = make_mutex,
    [SIM_RWLOCK] = make_rwlock,
    [SIM_SEMAPHORE] = make_semaphore,
    [SIM_MULTILOCK] = make_multilock};

void sim_make_lock(sim_handle *h, const lk_lock_config *config)
{
  int err = makers[h->kind](h, config);

  if (err == LK_ERR_NO_MEMORY) { /* the second try must succeed */
    h->process->failing_allocations = 0;
    err = makers[h->kind](h, config);
  }
  if (err != 0)
    abort();
}

void sim_free_lock(sim_handle *h)
{
  if (h->kind == SIM_RWLOCK)
    lk_rwlock_free(h->rwlock);
  else
    lk_lock_free(h->lock);
}
