/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LIMITS_H
#define LK_SIM_WORLD_LIMITS_H

#include "sim/world/process.h"

/**
 * Limits and times of clients and session leases that are not the defaults,
 * with condition "limits". They are chosen anew after each restart.
 */
void sim_limit_client(const sim_process *p, lk_client_config *config);
void sim_limit_lease(const sim_process *p, lk_lease_config *config);

#endif
