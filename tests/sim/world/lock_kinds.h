/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_KINDS_H
#define LK_SIM_WORLD_LOCK_KINDS_H

#include "sim/world/facts.h"

/** Make the lock of a handle, also of its other side. */
void sim_make_lock(sim_handle *h, const lk_lock_config *config);
/** Free it, also that of its other side. */
void sim_free_lock(sim_handle *h);

#endif
