/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_KEEPERS_H
#define LK_SIM_WORLD_KEEPERS_H

#include "sim/world/process.h"

/**
 * The session leases of a process: one, made together with its client; with the
 * condition "keepers" up to three, most of them made when a lock is the first to
 * want one, often long after the client and other locks, and freed now and then
 * once the last of their locks is freed.
 */

/** A life begins: the client has just been made. */
void sim_keepers_start(sim_process *p);
/** The session lease of a new lock; `r` chooses. */
lk_keeper *sim_keepers_take(sim_process *p, sim_rng *r);
/** That lock is freed. */
void sim_keepers_give(sim_process *p, lk_keeper *k, sim_rng *r);
/** Free all of them. */
void sim_keepers_free(sim_process *p);
/** The process has died, and their memory with it. */
void sim_keepers_die(sim_process *p);
/** Whether there is one. */
bool sim_keepers_any(const sim_process *p);
/** The one that was made with the client, which tells it first; or NULL. */
lk_keeper *sim_keepers_first(const sim_process *p);
/** How many nodes are still to be deleted by all of them. */
size_t sim_keepers_unfinished(const sim_process *p);

#endif
