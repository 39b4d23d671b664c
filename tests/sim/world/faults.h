/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_FAULTS_H
#define LK_SIM_WORLD_FAULTS_H

#include "sim/world/world.h"

/**
 * Faults. A lasting fault ends after some time, and at the end of the run all
 * end. To add a fault: a line here, a function sim_inject_FUNCTION() in a file
 * faults_*.c, and its weight in the scenarios or conditions that have it.
 */
typedef struct sim_faults sim_faults;

/* clang-format off */
#define SIM_FAULTS(FAULT)                                                     \
  FAULT(DELAY, delay, "bytes are delayed by up to T/5 each way")                 \
  FAULT(PIECES, pieces, "bytes arrive in small pieces")                       \
  FAULT(CUT, cut, "a connection breaks")                                      \
  FAULT(CUT_AT, cut_at, "a connection breaks at the n-th byte from now")      \
  FAULT(HALF, half, "no bytes arrive in one direction of a route")                  \
  FAULT(PARTITION, partition, "some processes are cut off from some servers")             \
  FAULT(PROXY, proxy, "a proxy accepts connections and never answers")          \
  FAULT(PAUSE, pause, "a process is paused")                               \
  FAULT(CRASH, crash, "a process dies and starts again")                      \
  FAULT(LEAVE, leave, "a process frees its client and starts again")          \
  FAULT(SERVER_CRASH, server_crash, "a server crashes and starts again")         \
  FAULT(SERVER_STOP, server_stop, "a server is stopped")                    \
  FAULT(STALL, stall, "all servers are stopped, for less than T/3")           \
  FAULT(MUTE, mute, "a server replies to pings only")                         \
  FAULT(ONE_SILENT, one_silent, "one follower does not reply, and the others serve") \
  FAULT(RESTARTS, restarts, "servers are restarted one after the other")      \
  FAULT(FOLLOWER_CUT, follower_cut, "a follower is cut off from its leader")            \
  FAULT(LEADER_CUT, leader_cut, "the leader is cut off from its followers")             \
  FAULT(DEPOSED, deposed, "the same, and a process stays connected to it")            \
  FAULT(LAG, lag, "a server receives commits late")                                     \
  FAULT(LATE_WRITE, late_write, "a connection breaks after a write that is committed late")    \
  FAULT(THROTTLE, throttle, "requests are answered THROTTLED")                \
  FAULT(ERRORS, errors, "requests are answered with errors of a server in trouble") \
  FAULT(DELETE_NODE, delete_node, "an operator deletes a contender node")       \
  FAULT(DELETE_ALL, delete_all, "an operator deletes a lock directory with all its nodes") \
  FAULT(SET_NODE, set_node, "an operator changes the data of a contender node")                 \
  FAULT(FOREIGN, foreign, "an operator creates a child that is no contender node")       \
  FAULT(LONG_LIST, long_list, "an operator creates many children that are no contender nodes") \
  FAULT(EXPIRE, expire, "an operator ends a session")                                 \
  FAULT(DENY, deny, "an operator takes permissions away")                             \
  FAULT(COUNTER, counter, "a sequence counter is near its maximum")               \
  FAULT(HOSTS, hosts, "a client is given another list of servers")               \
  FAULT(CLOCK_STEP, clock_step, "time passes between two readings of a clock")  \
  FAULT(BOUNDS, bounds, "a server grants other session timeouts")        \
  FAULT(CLOSE, close, "a process closes its client, and starts again")         \
  FAULT(WIPE, wipe, "all servers lose their data, or another ensemble replaces them")         \
  FAULT(RESTORE, restore, "all servers are restored from an older snapshot")    \
  FAULT(CLOSE_EARLY, close_early, "servers close connections right after the handshake")    \
  FAULT(THROTTLE_WATCHES, throttle_watches, "setWatches is throttled")        \
  FAULT(OLDER, older, "a server is of an older version without some requests")  \
  FAULT(ADDRESSES, addresses, "a name resolves to other addresses, some of them dead")\
  FAULT(SLOW_LOOKUPS, slow_lookups, "lookups of names take up to 2 T")        \
  FAULT(NARROW, narrow, "routes have a limited bandwidth")      \
  FAULT(RESUME, resume, "a process dies, and another resumes its session")  \
  FAULT(STARVE, starve, "allocations of a process fail")                    \
  FAULT(EAGER, eager, "a driver connects and sends in its wake hook")
/* clang-format on */

#define SIM_FAULT_ENUM(name, function, text) SIM_FAULT_##name,
enum sim_fault { SIM_FAULTS(SIM_FAULT_ENUM) SIM_NFAULTS };

/** "cut", "partition", … */
extern const char *const sim_fault_names[SIM_NFAULTS];

sim_faults *sim_faults_new(sim_world *w);
void sim_faults_free(sim_faults *f);
/** Start faults, one after the other: by the weights of the scenario, or those
    that the schedule lists. */
void sim_faults_begin(sim_faults *f);
/** End all active faults and start no more. */
void sim_faults_end(sim_faults *f);

/** Whether a lock's directory has nodes of the fault LONG_LIST. */
bool sim_long_list_remains(const sim_world *w);

#endif
