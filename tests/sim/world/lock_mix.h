/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_MIX_H
#define LK_SIM_WORLD_LOCK_MIX_H

#include "sim/world/world.h"

/**
 * The kinds of locks that the actors of a run use. The seed chooses it apart
 * from the scenario, so that all faults meet all kinds. To add a kind: a name
 * here, a function in lock_kinds.c, and a weight in the lock mixes that have
 * it.
 */
typedef enum sim_kind {
  SIM_MUTEX,
  SIM_RWLOCK, /**< two handles, one for each side */
  SIM_SEMAPHORE,
  SIM_MULTILOCK,
  SIM_NKINDS
} sim_kind;

struct sim_lock_mix {
  const char *name;
  const char *text;
  unsigned weight;            /**< of its choice by a seed */
  unsigned kinds[SIM_NKINDS]; /**< weights of the choice by an actor */
};

extern const sim_lock_mix sim_lock_mixes[];
extern const size_t sim_nlock_mixes;

/** The lock mix of that name; NULL: there is none. */
const sim_lock_mix *sim_lock_mix_find(const char *name);
/** The lock mix that a seed chooses. */
const sim_lock_mix *sim_lock_mix_of(uint64_t seed);
/** Whether the lock mix of the run has only mutexes. */
static inline bool sim_has_only_mutexes(const sim_world *w)
{
  return w->lock_mix == &sim_lock_mixes[0];
}

/** The node with the number of permits, and the path of the semaphore. */
#define SIM_LIMIT          "/limit"
#define SIM_SEMAPHORE_PATH "/s"

enum { SIM_MOST_PLACES_IN_QUEUE = 3, SIM_MOST_PERMITS = 3 };

/** A place in a queue. */
typedef struct sim_place {
  unsigned lock_index; /**< index in the world's locks */
  bool shares;         /**< shared with other readers */
  bool writes;         /**< the write side of a read-write lock */
} sim_place;

/** The lock that an actor wants a handle of. */
typedef struct sim_lock_request {
  sim_kind kind;
  size_t nplaces;
  /** members of a multi-lock in the common order; of a semaphore the queue and
      the leases */
  sim_place places[SIM_MOST_PLACES_IN_QUEUE];
  bool backwards; /**< the members are passed in the reverse order */
  int32_t take;   /**< number of permits to acquire */
} sim_lock_request;

/** Choose the directories of the locks, with a random generator of its own. */
void sim_lock_mix_set_paths(sim_world *w);

/** A random lock for an actor whose preferred directory is `lock_index`. */
sim_lock_request sim_random_lock_request(const sim_world *w, sim_rng *r,
                                         unsigned lock_index);

#endif
