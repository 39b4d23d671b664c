/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LEASES_H
#define LK_SIM_WORLD_LEASES_H

#include "sim/world/process.h"

#include "proto/engine/lease_slot.h"

/**
 * The session lease of a process. Its options are chosen together with the
 * client; with the condition "late-lease" often only when the first lock is
 * made, long after the client.
 */

/** A life begins: the client has just been made. */
void sim_lease_maybe_make(sim_process *p);
/** The session lease for a new lock; it is made if there is none. */
lk_session_lease *sim_lease_get(sim_process *p);
/** How many nodes are still to be deleted by it. */
size_t sim_lease_unfinished(const sim_process *p);

#endif
