/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_ACTORS_H
#define LK_SIM_ACTORS_H

#include "sim/process.h"

/**
 * Those in a process who want locks: they acquire, hold, work, verify, cancel
 * and release, at any time and inside callbacks, and tell the judge what they
 * were told.
 */

/** A life begins: the process has a client and a keeper, not connected yet. */
void sim_actors_start(sim_process *p);
/** Want nothing from now on: take back what is under way, release what is held;
    also once more after a restart while the world is calming. */
void sim_actors_stop(sim_process *p);
/** Free all locks; keeper and client follow. It may be in a callback. */
void sim_actors_free(sim_process *p);
/** The process has died and its memory with it: forget the locks, drop the
    jobs, call nothing. */
void sim_actors_die(sim_process *p);
/** The memory of the actors themselves; after free or die. */
void sim_actors_done(sim_process *p);

#endif
