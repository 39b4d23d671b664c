/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_DRIVER_H
#define LK_SIM_WORLD_DRIVER_H

#include "sim/world/process.h"

/**
 * The driver of a process. Like the libev driver, it runs its loop when a
 * connection is ready, a deadline is due or the client wakes it. Each iteration
 * takes the steps of sim_loop_step in their order.
 */
enum sim_loop_step {
  SIM_LOOP_NO_STEP = 0,
  SIM_LOOP_TICK = 1,
  SIM_LOOP_READ,
  SIM_LOOP_TICK_AGAIN,  /**< again, since the callbacks of the read may have
                           taken time */
  SIM_LOOP_FOLLOW_WANT, /**< open or close connections */
  SIM_LOOP_WRITE,
  SIM_LOOP_SET_TIMER,
  SIM_LOOP_END
};

void sim_driver_init(sim_process *p);
/** From the next lookup on, one name resolves to all servers and to `dead`
    addresses that never answer, in random order. */
void sim_driver_set_addresses(sim_process *p, sim_rng *r, unsigned dead);
/** The hooks for lk_client_new(). */
lk_hooks sim_driver_hooks(sim_process *p);
/** Run an iteration of the loop. If a pause has interrupted one, run the rest
    of it. */
void sim_driver_run_loop(sim_process *p);
/** Close the connections and cancel all jobs. */
void sim_driver_stop(sim_process *p, sim_close_mode mode);

/** Defined in process.c: the client was freed. */
void sim_process_ended(sim_process *p);

#endif
