/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCAL_LOCAL_ACQUISITION_H
#define LK_RECIPES_LOCAL_LOCAL_ACQUISITION_H

/**
 * @file
 * The acquisition of a lock handle that uses a local queue.
 */

#include "recipes/lock/lock.h"

/** Let the acquisitions of the mutex `l` use the local queue of its path, which
    is made if there is none. false: no memory. */
bool lk__local_acquisition_attach(lk_lock *l, const lk_lock_config *config);

#endif
