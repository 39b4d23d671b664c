/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_MENU_H
#define LK_SIM_WORLD_MENU_H

#include "sim/world/world.h"

/**
 * What is locked: the kinds of locks that the actors of a run choose among. It
 * is chosen apart from the scenario, so that everything goes wrong with all of
 * them. To add a kind: here, in makers.c, which makes handles of it, and in the
 * menus that shall have it.
 */
typedef enum sim_kind {
  SIM_MUTEX,
  SIM_RWLOCK, /**< two handles, one for each side */
  SIM_SEMAPHORE,
  SIM_MULTILOCK,
  SIM_NKINDS
} sim_kind;

struct sim_menu {
  const char *name;
  const char *text;
  unsigned weight;            /**< how often a seed chooses it */
  unsigned kinds[SIM_NKINDS]; /**< how often an actor does */
};

extern const sim_menu sim_menus[];
extern const size_t sim_nmenus;

/** NULL: there is none of that name. */
const sim_menu *sim_menu_find(const char *name);
/** The one that a seed chooses. */
const sim_menu *sim_menu_of(uint64_t seed);
/** Whether it has nothing but mutexes. */
static inline bool sim_plain(const sim_world *w)
{
  return w->menu == &sim_menus[0];
}

/** The node that says how many permits there are, and of what. */
#define SIM_LIMIT          "/limit"
#define SIM_SEMAPHORE_PATH "/s"

enum { SIM_MOST_SEATS = 3, SIM_MOST_PERMITS = 3 };

/** A place in a queue that a handle wants to have. */
typedef struct sim_seat {
  unsigned lock_at; /**< which of the world's locks */
  bool shares;      /**< it wants it together with others who do */
  bool writes;      /**< alone, as the writer of a read-write lock */
} sim_seat;

/** What somebody wants a handle for. */
typedef struct sim_wish {
  sim_kind kind;
  size_t nseats;
  sim_seat seats[SIM_MOST_SEATS]; /**< of a multi-lock as they are taken; of a
                                       semaphore the queue and the leases */
  bool backwards;                 /**< they are asked for the other way round */
  int32_t take;                   /**< permits */
} sim_wish;

/** The places where there is something to lock; its own draws. */
void sim_menu_lay(sim_world *w);

/** What an actor wants whose favourite among the world's locks is
    `lock_at`. */
sim_wish sim_some_wish(const sim_world *w, sim_rng *r, unsigned lock_at);

#endif
