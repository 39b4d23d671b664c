/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_FAULTS_H
#define LK_SIM_WORLD_FAULTS_H

#include "sim/world/world.h"

/**
 * Faults. A fault that lasts ends after some time; at the end of the run all
 * end. To add one: a line here, a function sim_inject_FUNCTION() in faults_*.c,
 * and its weight in the scenarios or conditions that have it.
 */
typedef struct sim_faults sim_faults;

/* clang-format off */
#define SIM_FAULTS(FAULT)                                                     \
  FAULT(DELAY, delay, "bytes take up to T/5 longer each way")                 \
  FAULT(PIECES, pieces, "bytes arrive in small pieces")                       \
  FAULT(CUT, cut, "a connection breaks")                                      \
  FAULT(CUT_AT, cut_at, "a connection breaks at the n-th byte from now")      \
  FAULT(HALF, half, "one direction between two goes silent")                  \
  FAULT(PARTITION, partition, "some processes lose some servers")             \
  FAULT(PROXY, proxy, "a proxy takes connections and never answers")          \
  FAULT(PAUSE, pause, "a process stands still")                               \
  FAULT(CRASH, crash, "a process dies and starts again")                      \
  FAULT(LEAVE, leave, "a process frees its client and starts again")          \
  FAULT(SERVER_CRASH, server_crash, "a server dies and starts again")         \
  FAULT(SERVER_STOP, server_stop, "a server stands still")                    \
  FAULT(RESTARTS, restarts, "servers are restarted one after the other")      \
  FAULT(FOLLOWER_CUT, follower_cut, "a follower loses its leader")            \
  FAULT(LEADER_CUT, leader_cut, "the leader loses its followers")             \
  FAULT(DEPOSED, deposed, "the same, and a process stays with it")            \
  FAULT(LAG, lag, "a server lags behind")                                     \
  FAULT(LATE_WRITE, late_write, "a connection breaks behind a slow write")    \
  FAULT(THROTTLE, throttle, "requests are answered THROTTLED")                \
  FAULT(DELETE_NODE, delete_node, "somebody deletes a node of a queue")       \
  FAULT(DELETE_ALL, delete_all, "somebody deletes a lock with all its nodes") \
  FAULT(SET_NODE, set_node, "somebody changes a node's data")                 \
  FAULT(FOREIGN, foreign, "somebody puts a strange child into a queue")       \
  FAULT(EXPIRE, expire, "a session is ended")                                 \
  FAULT(DENY, deny, "permissions are taken away")                             \
  FAULT(COUNTER, counter, "a sequence counter is near its end")               \
  FAULT(HOSTS, hosts, "a process is told to use other servers")               \
  FAULT(CLOCK_STEP, clock_step, "time passes between two readings of a clock")  \
  FAULT(BOUNDS, bounds, "a server grants other session timeouts")        \
  FAULT(CLOSE, close, "a process closes its client, and starts again")         \
  FAULT(WIPE, wipe, "the servers begin anew with nothing, or others do")         \
  FAULT(RESTORE, restore, "the servers begin anew from an older snapshot")    \
  FAULT(CLOSE_EARLY, close_early, "servers close connections right after the handshake")    \
  FAULT(THROTTLE_WATCHES, throttle_watches, "setWatches is throttled")        \
  FAULT(OLDER, older, "a server is older, and does not know some requests")  \
  FAULT(ADDRESSES, addresses, "a name has other addresses, some of them dead")\
  FAULT(NARROW, narrow, "routes carry so many bytes a second at most")      \
  FAULT(RESUME, resume, "a process dies, and another resumes its session")  \
  FAULT(STARVE, starve, "allocations of a process fail")                    \
  FAULT(EAGER, eager, "a driver acts in its wake hook")
/* clang-format on */

#define SIM_FAULT_ENUM(name, function, text) SIM_FAULT_##name,
enum sim_fault { SIM_FAULTS(SIM_FAULT_ENUM) SIM_NFAULTS };

sim_faults *sim_faults_new(sim_world *w);
void sim_faults_free(sim_faults *f);
/** Start faults by the weights of the scenario, one after the other. */
void sim_faults_begin(sim_faults *f);
/** End all active faults and start no more. */
void sim_faults_end(sim_faults *f);

#endif
