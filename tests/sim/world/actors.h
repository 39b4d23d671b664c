/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ACTORS_H
#define LK_SIM_WORLD_ACTORS_H

#include "sim/world/process.h"

/**
 * The actors of a process. Lockers acquire, hold, verify, cancel and release at
 * any time, also in callbacks. Requesters send reads and writes with watches;
 * rare requesters send the requests that locks do not need. Watchers set
 * persistent watches. Subscribers subscribe to nodes. Foreign waiters and
 * foreign lockers queue as clients of another library do. Candidates take part
 * in an election, members in a group, and roster readers read who does. A
 * permit setter changes the number of permits. All calls and callbacks are
 * reported to the checker.
 */

/** The process has a new client, not connected yet. */
void sim_actors_start(sim_process *p);
/** Tell the actors to start nothing new and to release what they hold. Some
    continue an acquire. Called again for a process that restarts after the end
    of the faults. */
void sim_actors_stop(sim_process *p);
/** Free all locks; the caller then frees the client. May be called in a
    callback. */
void sim_actors_free(sim_process *p);
/** The process has died: forget all locks without a call to the library. */
void sim_actors_forget(sim_process *p);
/** Free the actors; after sim_actors_free() or sim_actors_forget(). */
void sim_actors_destroy(sim_process *p);
/** Whether the actors that report when they are idle are idle. The checker
    knows itself whether the others are. */
bool sim_actors_are_idle(const sim_process *p);

#endif
