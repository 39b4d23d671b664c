/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LEASES_H
#define LK_SIM_WORLD_LEASES_H

#include "sim/world/process.h"

#include "proto/engine/lease_slot.h"

/**
 * The session lease of a process. With condition "late-lease" it is often made
 * only with the first lock, long after the client.
 */

/** The process has a new client: make its session lease, or leave that to the
    first lock. */
void sim_lease_maybe_make(sim_process *p);
/** The session lease for a new lock; made if there is none. */
lk_session_lease *sim_lease_get(sim_process *p);
/** The number of nodes that the session lease still has to delete. */
size_t sim_lease_unfinished(const sim_process *p);

#endif
