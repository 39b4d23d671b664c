/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PROBER_H
#define LK_SIM_WORLD_PROBER_H

#include "sim/world/process.h"

/** The driver's second connection: it asks a server whether it has a quorum. */

/** The client may have another wish. */
void sim_prober_update(sim_process *p);
/** What a look at its socket shows. The client may be freed. */
void sim_prober_read(sim_process *p);
void sim_prober_stop(sim_process *p, bool silent);

#endif
