/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_H
#define LK_SIM_WORLD_H

#include "sim/agenda.h"
#include "sim/ensemble.h"
#include "sim/rng.h"
#include "sim/trace.h"

/**
 * One run: an ensemble, a network, processes, faults, and a judge. The seed and
 * the scenario decide everything.
 */
typedef struct sim_world sim_world;
typedef struct sim_scenario sim_scenario; /* scenario.h: what there is and what
                                             goes wrong how often */

struct sim_world {
  uint64_t seed;
  const sim_scenario *scenario;
  sim_agenda agenda;
  sim_trace trace;
  sim_ensemble *ensemble;
  struct sim_process *processes;
  size_t nprocesses;
  struct sim_judge *judge;
  size_t grants; /**< so far */
  size_t faults;
};

#endif
