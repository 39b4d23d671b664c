/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_CONFIG_H
#define LK_RECIPES_LEASE_LEASE_CONFIG_H

/**
 * @file
 * The creation of the session lease of a client, and its options.
 */

#include "recipes/lease/session_lease.h"

/** Return the session lease of a client. If the client has none yet, one is
    made with the default options. NULL: no memory. */
lk_session_lease *lk__lease_of(lk_client *c);

#endif
