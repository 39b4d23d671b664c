/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PROCESS_H
#define LK_SIM_WORLD_PROCESS_H

#include "sim/world/network.h"
#include "sim/world/world.h"

#include <latchkey/latchkey.h>

enum {
  SIM_MOST_DEAD = 3, /**< addresses of a name at which nothing answers */
  SIM_MOST_ADDRESSES = SIM_WORLD_SERVERS + SIM_MOST_DEAD,
  SIM_DEAD = SIM_WORLD_SERVERS
};

/** A question to a server, on a connection of its own. */
typedef struct sim_prober {
  uint64_t attempt; /**< 0: none */
  sim_pipe *pipe;   /**< or NULL */
  size_t asked;     /**< bytes sent of it */
  size_t len;
  char answer[LK_PROBE_ROOM];
} sim_prober;

/**
 * A process with one client, its session lease and some actors that want locks.
 * It is the engine's driver: it gives it time, bytes and connections, when the
 * process runs. It can stand still while true time goes on, it can die, and it
 * can begin a new life.
 */
typedef struct sim_process {
  sim_world *world;
  unsigned index;
  char name[8];      /**< "p0" */
  lk_client *client; /**< NULL: it has died, or ended */
  uint64_t life; /**< how often it was started */
  bool paused;
  int64_t paused_until_us; /**< paused: until then */
  unsigned
      jump_after_readings; /**< time passes at so many readings from now; 0 */
  int64_t jump_us;         /**< … so much; 0: until something is due */
  int64_t jumped_us;       /**< when time last passed so … */
  int64_t clock_before_jump_ms; /**< … and its clock before that */
  int64_t busy_until_us;        /**< a callback of its lasts until then */
  int64_t clock_base_ms; /**< its clock when true time was 0 */
  int32_t drift_ppm;     /**< faster (> 0) or slower than true time */
  lk_assurance assurance;   /**< of its session lease */
  const char *chroot;       /**< its clients', or "" */
  bool read_only;           /**< a server without a quorum will do for them */
  bool one_session;         /**< its clients end with their sessions */
  lk_mem mem;               /**< counts; what is in it is gone when it dies */
  size_t memory;            /**< bytes its client and locks have taken */
  lk_state state;           /**< as last told */
  struct sim_actor *actors; /**< actors.c's */

  /* the driver's */
  sim_rng rng;
  lk_listener listener;
  struct sim_block *blocks; /**< all memory of this life */
  sim_job loop_job;         /**< its loop wakes up */
  sim_job deadline_job;     /**< the same, when a deadline passes */
  sim_job resume_job;       /**< it goes on after a pause, or starts again */
  uint64_t attempt;         /**< the wish that is seen to */
  sim_job lookup_job;       /**< of a name */
  sim_pipe *pipe;           /**< its connection, or NULL */
  sim_prober prober;        /**< its second connection */
  bool reported_open;       /**< the client knows that it is open */
  unsigned naddresses;      /**< where one name stands for all servers … */
  unsigned addresses[SIM_MOST_ADDRESSES]; /**< … which, or SIM_DEAD */
  unsigned eager;           /**< by how many it acts in its wake hook */
  bool in_loop;             /**< in the loop's turn */
  unsigned loop_step;       /**< where the turn goes on */
  unsigned pause_at_step;   /**< it will stand still there … */
  int64_t pause_at_step_us; /**< … for so long */
  unsigned allocations_until_failure; /**< after so many allocations … */
  unsigned failing_allocations;       /**< … so many fail */
  lk_session session_to_resume; /**< what its next life goes on with; or id 0 */
  bool has_resumed;         /**< this life does: it will not be a long one */
  bool freeing_client;      /**< it is freeing its client */
  bool has_locks;           /**< … whose locks are not freed yet */
  bool closing;             /**< it has closed its client … */
  int64_t closed_session;   /**< … which had this session … */
  int64_t restart_after_us; /**< … and starts again so long after it */
  sim_job free_job;         /**< it frees its client, when it likes */
} sim_process;

/** Its clock now, in ms: what lk_client_clock() says, also while it is
    paused. */
int64_t sim_process_clock(const sim_process *p);
/** True time at which its clock begins to show `ms`; INT64_MAX: never. */
int64_t sim_process_true_us(const sim_process *p, int64_t ms);
/** Whether it has a client, and is not about to free it. */
static inline bool sim_process_has_client(const sim_process *p)
{
  return p->client != NULL && !p->freeing_client;
}
/** Whether it executes anything now: an actor's job that finds it does not
    puts itself down for `paused_until_us`. */
static inline bool sim_process_runs(const sim_process *p)
{
  return sim_process_has_client(p) && !p->paused;
}

void sim_process_init(sim_process *p, sim_world *w, unsigned index);
/** Nothing of it is left; it must have died or left before. */
void sim_process_destroy(sim_process *p);
/** A client, its session lease and actors, after so long, if it has none then.
 */
void sim_process_start_in(sim_process *p, int64_t in_us);
/** It dies: no callback is called any more, its memory is gone. Its
    connection breaks, or its server is never told: the machine went with it,
    `silent`ly. */
void sim_process_crash(sim_process *p, bool silent);
/** It frees locks and client, now: allowed in any callback. */
void sim_process_free_client(sim_process *p);
/** It closes its client, frees that in `done` or at any other time, and starts
    again so long after. false: it cannot, or does so already. */
bool sim_process_close(sim_process *p, int64_t restart_after_us);
/** It closes its client after so long. */
void sim_process_close_in(sim_process *p, int64_t in_us);
/** It stands still for so long; `pause_at_step` > 0: from that step of a turn
 * on. */
void sim_process_pause(sim_process *p, int64_t for_us, unsigned pause_at_step);
/** The callback it is in takes so long: what follows in this turn comes later
   by its clock. Others go on meanwhile, as they do in a pause. */
void sim_process_spend_in_callback(sim_process *p, int64_t for_us);
/** Its clock before the time that has passed so in the present moment. */
int64_t sim_process_clock_before(const sim_process *p);
/** What is left of that when the call has returned is a pause. */
void sim_process_pause_for_spent_time(sim_process *p);
/** Its client reads its clock. */
int64_t sim_process_read_clock(sim_process *p);
/** After a call of the API that is not in a callback: see to what the client
    wants, at the next opportunity. The client's hook `wake` does it, too. */
void sim_process_schedule_loop(sim_process *p);

#endif
