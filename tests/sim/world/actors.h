/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ACTORS_H
#define LK_SIM_WORLD_ACTORS_H

#include "sim/world/process.h"

/**
 * Those in a process who want something: lockers acquire, hold, work, verify,
 * cancel and release, at any time and inside callbacks; a requester makes
 * requests of its own; a foreign waiter stands in the queue as another client's
 * read-write lock does, and a foreign locker locks as another client does; a
 * permit setter says how many permits there are; subscribers want to know; rare
 * requesters ask for what no lock needs, watchers watch and stay. All that they
 * do and are told is told to the judge.
 */

/** A life begins: the process has a client, not connected yet. */
void sim_actors_start(sim_process *p);
/** Want nothing new from now on, release what is held; some go on waiting for
    what they wanted. Also once more after a restart while the world is
    calming. */
void sim_actors_stop(sim_process *p);
/** Free all locks; the client follows. It may be in a callback. */
void sim_actors_free(sim_process *p);
/** The process has died and its memory with it: forget the locks, drop the
    jobs, call nothing. */
void sim_actors_forget(sim_process *p);
/** The memory of the actors themselves; after free or die. */
void sim_actors_destroy(sim_process *p);
/** Whether those have stopped of whom the checker knows nothing. */
bool sim_actors_idle(const sim_process *p);

#endif
