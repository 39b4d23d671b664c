/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_WORLD_H
#define LK_SIM_WORLD_WORLD_H

#include "sim/model/agenda.h"
#include "sim/model/ensemble.h"
#include "sim/model/rng.h"
#include "sim/model/trace.h"

/**
 * One run: an ensemble, a network, processes, faults, and a judge. The seed and
 * the scenario decide everything.
 *
 * First all is well, then the faults strike while the actors want locks, then
 * all is healed and the actors want nothing more, and at last everything is
 * taken apart.
 */
typedef struct sim_world sim_world;
typedef struct sim_scenario sim_scenario; /* scenario.h: what there is and what
                                             goes wrong how often */
typedef struct sim_lock_mix sim_lock_mix; /* menu.h: what is locked */
typedef struct sim_lock_style sim_lock_style; /* habits.h: and how */

enum {
  SIM_INCARNATION_EPOCHS = 1 << 16, /**< between two ages of an ensemble */
  SIM_MOST_WIPES = 4,
  SIM_TIMEOUT_FACTOR_MAX = 3, /**< no timeout is longer than so many times T */
  SIM_WORLD_SERVERS = 5,
  SIM_MOST_PROCESSES = 8,
  SIM_MOST_LOCKS = 4,
  SIM_LOCK_PATH = 32
};

struct sim_world {
  uint64_t seed;
  const sim_scenario *scenario;
  const sim_lock_mix *lock_mix;
  const sim_lock_style *style;
  unsigned conditions; /**< a bit for each that it has; conditions.h */
  sim_agenda agenda;
  sim_trace trace;
  sim_rng rng; /**< never drawn from: whoever needs chance forks it */
  sim_ensemble *ensemble;
  sim_ensemble_config config;
  struct sim_network *network;
  struct sim_process *processes;
  size_t nprocesses;
  struct sim_faults *faults;
  struct sim_checker *checker;
  int32_t timeout_ms;  /**< T: what clients want, within the servers' bounds */
  int32_t shortest_ms; /**< of the timeouts that servers may grant instead */
  int32_t longest_ms;
  size_t nlocks;      /**< directories in which somebody stands */
  char locks[SIM_MOST_LOCKS][SIM_LOCK_PATH]; /**< "/b", … */
  size_t nqueues;      /**< of these: the first ones are locks by themselves */
  bool reversed;       /**< who wants several takes the last one first */
  size_t semaphore_index; /**< its queue; its leases come next */
  int32_t permits;     /**< so many there are at first */
  bool has_limit_node; /**< a node says how many */
  bool all_requests;   /**< there are rare requesters and watchers */
  bool faults_over;    /**< the faults are over, nobody wants */
  unsigned wipes;      /**< how often the ensemble began anew */
  bool in_checker;     /**< the checker asks: no time passes by that */
  bool keep_going;     /**< also after something was found broken */
  size_t grants;       /**< so far; counted by the checker */
  size_t nfaults;      /**< counted by faults.c */
};

/** What is chosen for a run. NULL: what the seed chooses. */
typedef struct sim_choice {
  const sim_scenario *scenario;
  const sim_lock_mix *lock_mix;
  const sim_lock_style *style;
  const unsigned *conditions;
  bool all_requests; /**< with rare requesters and watchers */
} sim_choice;

/** What follows from the seed and the choice, in `w`; nothing else is there. */
void sim_world_choose(sim_world *w, uint64_t seed, const sim_choice *choice);
/** A world in which nothing has happened yet. Trace, checker and `keep_going`
   may be set up before it runs. */
void sim_world_init(sim_world *w, uint64_t seed, const sim_choice *choice);
/** What the names of servers begin with; others have other names. */
static inline char sim_first_letter(const sim_world *w)
{
  return (char)('s' + w->wipes);
}
/** The whole run; it ends when the checker finds something broken. */
void sim_world_run(sim_world *w);
void sim_world_destroy(sim_world *w);

#endif
