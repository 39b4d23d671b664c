/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_LOCK_KINDS_H
#define LK_SIM_WORLD_LOCK_KINDS_H

#include "sim/world/facts.h"

/** Make the lock of a handle; of a read-write lock, both sides. */
void sim_make_lock(sim_handle *h, const lk_lock_config *config);
/** Free the lock of a handle; of a read-write lock, both sides. */
void sim_free_lock(sim_handle *h);

#endif
