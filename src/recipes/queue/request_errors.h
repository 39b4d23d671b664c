/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_REQUEST_ERRORS_H
#define LK_RECIPES_QUEUE_REQUEST_ERRORS_H

/**
 * @file
 * Errors of requests that say nothing about the lock.
 */

#include "recipes/queue/contender.h"

/** A request completed with `err`, which says nothing about the lock: pause, or
    fail. */
void lk__contender_request_failed(lk_contender *ct, int err);
/** If a read completed since its reply is larger than the client accepts: fail.
    Such a reply breaks the connection, which is reported first; a contender
    that paused would request the same on each connection. */
bool lk__contender_fail_if_too_big(lk_contender *ct, int err);

#endif
