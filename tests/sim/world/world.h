/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_WORLD_H
#define LK_SIM_WORLD_WORLD_H

#include "sim/model/agenda.h"
#include "sim/model/ensemble.h"
#include "sim/model/rng.h"
#include "sim/model/trace.h"

/**
 * A run: an ensemble, a network, processes, faults and a checker. The seed and
 * the scenario determine everything.
 *
 * It starts without faults. Then faults happen while the actors acquire locks.
 * Then all faults end and the actors stop. At last all clients are freed.
 */
typedef struct sim_world sim_world;
typedef struct sim_scenario sim_scenario;     /* scenario.h */
typedef struct sim_lock_mix sim_lock_mix;     /* lock_mix.h */
typedef struct sim_lock_style sim_lock_style; /* lock_styles.h */
typedef struct sim_schedule sim_schedule;     /* schedule.h */

enum {
  SIM_INCARNATION_EPOCHS = 1 << 16, /**< difference between the epochs of two
                                       incarnations of the ensemble */
  SIM_MOST_WIPES = 4,
  SIM_TIMEOUT_FACTOR_MAX =
      3, /**< no session timeout is longer than this many times T */
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
  const sim_schedule *schedule; /**< NULL: as the seed chooses */
  sim_schedule *record;         /**< gets all that happens; NULL: nowhere */
  unsigned servers;             /**< number of servers; 0: the seed chooses */
  const char *version;          /**< of ZooKeeper; NULL: the seed chooses */
  unsigned conditions;          /**< a bit for each; see conditions.h */
  uint64_t possible_faults; /**< a bit for each; see sim_fault_is_possible() */
  sim_agenda agenda;
  sim_trace trace;
  /** other generators are forked from it; nothing is drawn from it */
  sim_rng rng;
  sim_ensemble *ensemble;
  sim_ensemble_config config;
  struct sim_network *network;
  struct sim_process *processes;
  size_t nprocesses;
  struct sim_faults *faults;
  struct sim_checker *checker;
  int32_t timeout_ms;  /**< T: the session timeout of the clients, within the
                          servers' bounds */
  int32_t shortest_ms; /**< bounds of the timeouts that servers may grant */
  int32_t longest_ms;
  size_t nlocks;                             /**< directories of locks */
  char locks[SIM_MOST_LOCKS][SIM_LOCK_PATH]; /**< "/b", … */
  size_t nqueues; /**< the first of these are locks by themselves; the others
                     belong to the semaphore */
  /** multi-locks take their members from the last to the first */
  bool reversed;
  size_t semaphore_index; /**< index of the semaphore's queue; the directory of
                             its leases follows */
  int32_t permits;        /**< initial number of permits */
  bool has_limit_node;    /**< the number of permits is in SIM_LIMIT */
  bool all_requests;      /**< there are rare requesters and watchers */
  bool faults_over;       /**< the faults have ended, and actors stop */
  unsigned wipes;         /**< number of wipes */
  unsigned slow_lookups;  /**< number of faults that make lookups slow */
  bool in_checker; /**< the checker is running, and its readings of clocks do
                      not count */
  bool keep_going; /**< continue after a violation */
  size_t grants;   /**< counted by the checker */
  size_t nfaults;  /**< counted by faults.c */
};

/** The choices for a run. NULL or 0: the seed chooses. */
typedef struct sim_choice {
  const sim_scenario *scenario;
  const sim_lock_mix *lock_mix;
  const sim_lock_style *style;
  const unsigned *conditions;
  const sim_schedule *schedule;
  unsigned servers;    /**< at most SIM_WORLD_SERVERS */
  const char *version; /**< of sim_version_find() */
  bool all_requests;   /**< add rare requesters and watchers */
} sim_choice;

/** The version with this name; NULL: the simulation does not know it. */
const char *sim_version_find(const char *name);
/** Make all choices, in `w`; nothing else is set up. */
void sim_world_choose(sim_world *w, uint64_t seed, const sim_choice *choice);
/** Set up a run. Trace, checker, `record` and `keep_going` may be changed
    before it starts. */
void sim_world_init(sim_world *w, uint64_t seed, const sim_choice *choice);
/** The first letter of the servers' names; another ensemble has another. */
static inline char sim_first_letter(const sim_world *w)
{
  return (char)('s' + w->wipes);
}
/** Run until the end or the first violation. */
void sim_world_run(sim_world *w);
void sim_world_destroy(sim_world *w);

#endif
