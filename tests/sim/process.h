/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_PROCESS_H
#define LK_SIM_PROCESS_H

#include "sim/network.h"
#include "sim/world.h"

#include <latchkey/latchkey.h>

/**
 * A process with one client, one keeper and some actors that want locks. It is
 * the engine's driver: it gives it time, bytes and connections, when the
 * process runs. It can stand still while true time goes on, it can die, and it
 * can begin a new life.
 */
typedef struct sim_process {
  sim_world *world;
  unsigned index;
  char name[8];      /**< "p0" */
  lk_client *client; /**< NULL: it has died, or ended */
  lk_keeper *keeper;
  uint64_t life; /**< how often it was started */
  bool paused;
  int64_t goes_on_us;    /**< paused: until then */
  int64_t clock_base_ms; /**< its clock when true time was 0 */
  int32_t drift_ppm;     /**< faster (> 0) or slower than true time */
  lk_assurance assurance;
  lk_mem mem;               /**< counts; what is in it is gone when it dies */
  size_t memory;            /**< bytes its client and locks have taken */
  lk_state state;           /**< as last told */
  sim_rng rng;              /**< of its client and its driver */
  struct sim_actor *actors; /**< actors.c's */

  /* the driver's */
  lk_listener listener;
  struct sim_block *blocks;
  sim_job turn;     /**< its loop wakes up */
  sim_job alarm;    /**< a deadline passes */
  sim_job resume;   /**< it goes on after a pause, or starts again */
  sim_pipe *pipe;   /**< its connection, or NULL */
  uint64_t attempt; /**< the wish that is seen to */
  unsigned order;   /**< of things in the next turn, after a pause */
} sim_process;

/** Its clock now, in ms: what lk_client_clock() says, also while it is
    paused. */
int64_t sim_process_clock(const sim_process *p);
/** True time at which its clock begins to show `ms`; INT64_MAX for never. */
int64_t sim_process_true_us(const sim_process *p, int64_t ms);
/** Whether it executes anything now: an actor's job that finds it does not
    puts itself down for `goes_on_us`. */
static inline bool sim_process_runs(const sim_process *p)
{
  return p->client != NULL && !p->paused;
}

void sim_process_init(sim_process *p, sim_world *w, unsigned index);
/** A client, a keeper and actors. */
void sim_process_start(sim_process *p);
/** It dies: no callback is called any more, its memory is gone. Its
    connection breaks, or its server is never told if the machine `silent`ly
    went with it. */
void sim_process_crash(sim_process *p, bool silent);
/** It frees locks, keeper and client, now: allowed in any callback. */
void sim_process_leave(sim_process *p);
/** Start it after so long, if it is not running then. */
void sim_process_start_in(sim_process *p, int64_t in_us);
/** It stands still for so long. */
void sim_process_pause(sim_process *p, int64_t for_us);
/** After a call of the API that is not in a callback: see to what the client
    wants, at the next opportunity. The client's hook `wake` does it, too. */
void sim_process_settle(sim_process *p);

#endif
