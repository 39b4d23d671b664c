/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_DRIVER_H
#define LK_SIM_WORLD_DRIVER_H

#include "sim/world/process.h"

/**
 * The engine's driver of a process: a loop that wakes up when there is
 * something to do, sees to deadlines first, then reads, then does what the
 * client wishes, writes once and sets its alarm, as the driver for libev does.
 */
enum sim_loop_step {
  SIM_LOOP_TICK = 1,
  SIM_LOOP_READ,
  SIM_LOOP_TICK_AGAIN, /**< before it waits: callbacks have taken time */
  SIM_LOOP_WISH,
  SIM_LOOP_WRITE,
  SIM_LOOP_ALARM,
  SIM_LOOP_END
};

void sim_driver_init(sim_process *p);
/** One name stands for all servers from the next look-up on, and for so many
    dead addresses, in any order. */
void sim_driver_set_addresses(sim_process *p, sim_rng *r, unsigned dead);
/** What lk_client_new() gets. */
lk_hooks sim_driver_hooks(sim_process *p);
/** The loop's turn now, or the rest of one that a pause interrupted. */
void sim_driver_run_loop(sim_process *p);
/** Hang up, and wait for nothing any more. */
void sim_driver_stop(sim_process *p, bool silent);

/** process.c's: the client is freed. */
void sim_process_ended(sim_process *p);

#endif
