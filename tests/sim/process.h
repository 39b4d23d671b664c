/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_PROCESS_H
#define LK_SIM_PROCESS_H

#include "sim/world.h"

#include <latchkey/latchkey.h>

/**
 * A process with one client, one keeper and some actors that want locks. It is
 * the engine's driver: it gives it time, bytes and connections, when the
 * process runs. It can stand still while true time goes on, and it can die.
 */
typedef struct sim_process {
  sim_world *world;
  unsigned index;
  char name[8];      /**< "p0" */
  lk_client *client; /**< NULL: it has died, or ended */
  lk_keeper *keeper;
  uint64_t life; /**< how often it was started */
  bool paused;
  int64_t clock_base_ms; /**< its clock when true time was 0 */
  int32_t drift_ppm;     /**< faster (> 0) or slower than true time */
  size_t memory;         /**< bytes its client and locks have taken */
  lk_state state;        /**< as last told */
  struct sim_actor *actors;
  /* … the driver's own fields follow … */
} sim_process;

/** Its clock now, in ms: what lk_client_clock() says, also while it is
    paused. */
int64_t sim_process_clock(const sim_process *p);
/** True time at which its clock shows `ms`. */
int64_t sim_process_true_us(const sim_process *p, int64_t ms);

void sim_process_start(sim_process *p);
/** It dies: no callback is called any more, its connections end with it. */
void sim_process_crash(sim_process *p);
/** It stands still for so long. */
void sim_process_pause(sim_process *p, int64_t for_us);
/** After a call of the API: see to what the client wants now. */
void sim_process_settle(sim_process *p);

#endif
