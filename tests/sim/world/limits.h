/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LIMITS_H
#define LK_SIM_WORLD_LIMITS_H

#include "sim/world/process.h"

/**
 * Limits and times in the options of a client and its session leases, other
 * than the defaults; only with the condition "limits". They are drawn anew in
 * each life.
 */
void sim_limit_client(const sim_process *p, lk_client_config *config);
void sim_limit_lease(const sim_process *p, lk_lease_config *config);

#endif
