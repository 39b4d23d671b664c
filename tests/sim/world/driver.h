/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_DRIVER_H
#define LK_SIM_WORLD_DRIVER_H

#include "sim/world/process.h"

/**
 * The driver of a process. Like the libev driver, its loop wakes up when there
 * is something to do. Each iteration handles deadlines, reads, follows
 * lk_client_want(), writes once and sets its timer.
 */
enum sim_loop_step {
  SIM_LOOP_TICK = 1,
  SIM_LOOP_READ,
  SIM_LOOP_TICK_AGAIN, /**< callbacks may have taken time */
  SIM_LOOP_FOLLOW_WANT,
  SIM_LOOP_WRITE,
  SIM_LOOP_ALARM,
  SIM_LOOP_END
};

void sim_driver_init(sim_process *p);
/** From the next lookup on, one name resolves to all servers and `dead` dead
    addresses, in random order. */
void sim_driver_set_addresses(sim_process *p, sim_rng *r, unsigned dead);
/** The hooks for lk_client_new(). */
lk_hooks sim_driver_hooks(sim_process *p);
/** Run an iteration of the loop, or the rest of one that a pause
    interrupted. */
void sim_driver_run_loop(sim_process *p);
/** Close the connections and cancel all jobs. */
void sim_driver_stop(sim_process *p, bool silent);

/** The client was freed (process.c). */
void sim_process_ended(sim_process *p);

#endif
