/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H
#define LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H

#include "recipes/semaphore/semaphore_state.h"

/**
 * @file
 * The acquisition of permits: a queue node in `locks`, and a permit node in
 * `leases` for each permit. The last permit node is created after the others.
 * Its contender lists all permit nodes, and waits until their number is within
 * the limit. The permits are granted when all are held and the queue node is
 * the first of its queue.
 */

/** Make an acquisition; `arg` is for the callbacks. NULL: no memory. `plan`
    must stay until the acquisition was stopped, has ended or was lost. */
lk_semaphore_acquisition *
lk__semaphore_acquisition_new(lk_session_lease *lease, lk_semaphore_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

#endif
