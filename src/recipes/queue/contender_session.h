/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_SESSION_H
#define LK_RECIPES_QUEUE_CONTENDER_SESSION_H

/**
 * @file
 * A contender as a user of the session lease: what connections, the end of the
 * session and the lease deadline mean for it.
 */

#include "recipes/queue/contender.h"

extern const lk_lease_user_kind lk__contender_lease_user;

/** Continue in the present state: there is a connection, or a pause has ended.
 */
void lk__contender_resume(lk_contender *ct);

#endif
