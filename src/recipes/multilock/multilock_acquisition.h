/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H
#define LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H

#include "recipes/multilock/multilock_nodes.h"

/**
 * @file
 * The acquisition of several locks: a contender node in each queue, made in one
 * transaction. When one of the contenders has to wait, the nodes of later
 * members are deleted, so that the acquisition always consists of the first
 * members. When that contender is granted, another transaction creates the
 * other nodes.
 */

/** Make an acquisition; `arg` is for the callbacks. NULL: no memory. `plan`
    must stay until the acquisition was stopped, has ended or was lost. */
lk_multilock_acquisition *
lk__multilock_acquisition_new(lk_session_lease *lease, lk_multilock_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

#endif
