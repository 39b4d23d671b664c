/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_PROBER_H
#define LK_SIM_WORLD_PROBER_H

#include "sim/world/process.h"

/** The driver's second connection: it asks another server whether it has a
    quorum. */

/** Follow lk_client_want_probe(). */
void sim_prober_update(sim_process *p);
/** Read from the socket. May free the client. */
void sim_prober_read(sim_process *p);
void sim_prober_stop(sim_process *p, sim_close_mode mode);

#endif
