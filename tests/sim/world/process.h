/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PROCESS_H
#define LK_SIM_WORLD_PROCESS_H

#include "sim/world/network.h"
#include "sim/world/world.h"

#include <latchkey/latchkey.h>

enum {
  SIM_MOST_DEAD = 3, /**< number of addresses of a name that never answer */
  SIM_MOST_ADDRESSES = SIM_WORLD_SERVERS + SIM_MOST_DEAD,
  SIM_DEAD = SIM_WORLD_SERVERS /**< in place of a server: never answers */
};

/** A probe on a connection of its own. */
typedef struct sim_prober {
  uint64_t attempt; /**< 0: none */
  sim_pipe *pipe;   /**< or NULL */
  size_t sent;      /**< bytes of the probe sent */
  size_t len;
  char answer[LK_PROBE_ROOM];
} sim_prober;

/** A name that a process looks up. The result of a lookup is kept, also if the
    attempt that has begun it is over. */
typedef struct sim_name {
  struct sim_process *process;
  sim_job lookup_job; /**< the end of the lookup */
  int64_t began_us;   /**< when it was last looked up; 0: never */
  bool running;
  bool known; /**< a lookup has succeeded */
} sim_name;

/**
 * A process with one client, its session lease and some actors. It is the
 * driver of the client: it passes time, bytes and connections to it while the
 * process runs. A process can be paused, die and start again.
 */
typedef struct sim_process {
  sim_world *world;
  unsigned index;
  char name[8];      /**< "p0" */
  lk_client *client; /**< NULL: the process has died or ended */
  uint64_t life;     /**< number of starts */
  bool paused;
  int64_t paused_until_us;      /**< end of the pause */
  unsigned jump_after_readings; /**< the clock jumps at this reading from now;
                                   0: no jump */
  int64_t jump_us;              /**< by this much; 0: to the next deadline */
  int64_t jumped_us;            /**< when the clock last jumped */
  int64_t clock_before_jump_ms; /**< the clock before that */
  int64_t busy_until_us; /**< a callback of the process runs until then */
  int64_t clock_base_ms; /**< its clock at virtual time 0 */
  /** the drift of its clock: faster (> 0) or slower than virtual time */
  int32_t drift_ppm;
  lk_assurance assurance; /**< of its session lease */
  int64_t margin_set_us;  /**< when an actor last set the margin of the lease */
  const char *chroot;     /**< of its clients, or "" */
  bool read_only;         /**< its clients accept a read-only server */
  bool one_session;       /**< its clients do not start another session when one
                             expires */
  lk_mem mem; /**< counts bytes; all blocks are freed when the process dies */
  size_t memory;            /**< bytes allocated by its client and locks */
  lk_state state;           /**< the session state as last reported */
  int64_t rejected_us;      /**< when a server last rejected a request of the
                               program as unknown, and closed the connection */
  struct sim_actor *actors; /**< see actors.c */

  /* of the driver */
  sim_rng rng;
  lk_listener listener;
  struct sim_block *blocks; /**< all blocks of this client */
  sim_job loop_job;         /**< the next iteration of the loop */
  sim_job deadline_job;     /**< an iteration at a deadline */
  sim_job resume_job;       /**< the end of a pause, or a start */
  uint64_t attempt;         /**< lk_want.attempt that the driver follows */
  /** the names of the servers, and that of all of them */
  sim_name names[SIM_WORLD_SERVERS + 1];
  sim_name *resolving;    /**< the attempt waits for this name, or NULL */
  sim_job remembered_job; /**< the addresses that it had before are used */
  sim_pipe *pipe;         /**< its connection, or NULL */
  sim_prober prober;      /**< its second connection */
  bool reported_open;     /**< lk_client_connected() was called */
  unsigned naddresses; /**< of one name for all servers; 0: there is a name for
                          each */
  unsigned addresses[SIM_MOST_ADDRESSES]; /**< servers, or SIM_DEAD */
  /** number of active faults that make it connect and send in its wake hook */
  unsigned eager_faults;
  bool in_loop;             /**< an iteration of the loop is running */
  unsigned loop_step;       /**< next step of the loop */
  unsigned pause_at_step;   /**< it will pause before this step … */
  int64_t pause_at_step_us; /**< … for this time */
  unsigned allocations_until_failure; /**< allocations that still succeed … */
  unsigned failing_allocations;       /**< … before this many fail */
  lk_session session_to_resume; /**< the next start resumes it; id 0: none */
  bool has_resumed;    /**< the client has resumed a session; it will be closed
                          soon */
  bool freeing_client; /**< the client is being freed */
  bool has_locks; /**< the client is being freed, and its locks are not freed
                     yet */
  bool closing;   /**< lk_client_close() was called */
  int64_t closed_session;   /**< session of the client that was closed */
  int64_t restart_after_us; /**< time from its free to the next start */
  sim_job close_job; /**< closes the client, or frees the closed client */
} sim_process;

/** The clock of the process in ms, as lk_client_clock() has it. It also
    advances while the process is paused. */
int64_t sim_process_clock(const sim_process *p);
/** Whether the lock is held, and its lease deadline has not passed: no other
    owner may hold. In contrast to lk_lock_ok() also while it is unsure. */
bool sim_lease_lasts(const sim_process *p, const lk_lock *l);
/** The virtual time at which its clock shows `ms`; INT64_MAX: never. */
int64_t sim_process_true_us(const sim_process *p, int64_t ms);
/** Whether it has a client that is not being freed. */
static inline bool sim_process_has_client(const sim_process *p)
{
  return p->client != NULL && !p->freeing_client;
}
/** Whether the process executes anything: it has a client and is not paused. A
    job that is due while the process is paused schedules itself again at
    `paused_until_us`. */
static inline bool sim_process_runs(const sim_process *p)
{
  return sim_process_has_client(p) && !p->paused;
}

void sim_process_init(sim_process *p, sim_world *w, unsigned index);
/** Free its memory; its client must have died or been freed. */
void sim_process_destroy(sim_process *p);
/** Cancel a watch of the process, or remove it from the server, too. */
void sim_watch_cancel(const sim_process *p, lk_watch *w, bool on_server);
/** Start after this time, with a new client, session lease and actors. Does
    nothing if the process has a client then. */
void sim_process_start_in(sim_process *p, int64_t in_us);
/** The process dies: no callback is invoked, and its memory is freed.
    SIM_CLOSE_SILENTLY: its machine fails, too. */
void sim_process_crash(sim_process *p, sim_close_mode mode);
/** Free locks and client now; may be called in a callback. */
void sim_process_free_client(sim_process *p);
/** Close the client, free it in the callback or at another time, and start
    again. false: not possible now. */
bool sim_process_close(sim_process *p, int64_t restart_after_us);
/** Close the client after this time. */
void sim_process_close_in(sim_process *p, int64_t in_us);
/** Pause for this time, from now on. */
void sim_process_pause(sim_process *p, int64_t for_us);
/** Pause for this time, from before a sim_loop_step on; SIM_LOOP_NO_STEP: from
    now on. */
void sim_process_pause_at_step(sim_process *p, int64_t for_us, unsigned step);
/** The running callback takes this time: the clock of the process advances,
    other processes continue. */
void sim_process_spend_in_callback(sim_process *p, int64_t for_us);
/** The clock of the process; if it has jumped at this virtual time, the clock
    before the jump. */
int64_t sim_process_clock_before(const sim_process *p);
/** Called after a job: if it took time, the process is paused until virtual
    time has caught up. */
void sim_process_pause_for_spent_time(sim_process *p);
/** The client reads its clock. */
int64_t sim_process_read_clock(sim_process *p);
/** Schedule an iteration of the loop, after a call of the API outside of
    callbacks. The wake hook does the same. */
void sim_process_schedule_loop(sim_process *p);

#endif
