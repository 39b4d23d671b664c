/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_MIX_H
#define LK_SIM_WORLD_LOCK_MIX_H

#include "sim/world/world.h"

/**
 * What is locked: the kinds of locks that the actors of a run choose among. It
 * is chosen apart from the scenario, so that everything goes wrong with all of
 * them. To add a kind: here, in makers.c, which makes handles of it, and in the
 * lock mixes that shall have it.
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
  unsigned weight;            /**< how often a seed chooses it */
  unsigned kinds[SIM_NKINDS]; /**< how often an actor does */
};

extern const sim_lock_mix sim_lock_mixes[];
extern const size_t sim_nlock_mixes;

/** NULL: there is none of that name. */
const sim_lock_mix *sim_lock_mix_find(const char *name);
/** The one that a seed chooses. */
const sim_lock_mix *sim_lock_mix_of(uint64_t seed);
/** Whether it has nothing but mutexes. */
static inline bool sim_has_only_mutexes(const sim_world *w)
{
  return w->lock_mix == &sim_lock_mixes[0];
}

/** The node that says how many permits there are, and of what. */
#define SIM_LIMIT          "/limit"
#define SIM_SEMAPHORE_PATH "/s"

enum { SIM_MOST_PLACES_IN_QUEUE = 3, SIM_MOST_PERMITS = 3 };

/** A place in a queue that a handle wants to have. */
typedef struct sim_place {
  unsigned lock_index; /**< which of the world's locks */
  bool shares;      /**< it wants it together with others who do */
  bool writes;      /**< alone, as the writer of a read-write lock */
} sim_place;

/** What somebody wants a handle for. */
typedef struct sim_lock_request {
  sim_kind kind;
  size_t nplaces;
  sim_place
      places[SIM_MOST_PLACES_IN_QUEUE]; /**< of a multi-lock as they are taken;
                                 of a semaphore the queue and the leases */
  bool backwards; /**< they are asked for the other way round */
  int32_t take;   /**< permits */
} sim_lock_request;

/** The places where there is something to lock; its own draws. */
void sim_lock_mix_set_paths(sim_world *w);

/** What an actor wants whose favourite among the world's locks is
    `lock_index`. */
sim_lock_request sim_random_lock_request(const sim_world *w, sim_rng *r,
                                         unsigned lock_index);

#endif
