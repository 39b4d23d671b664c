/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_REQUEST_ERRORS_H
#define LK_RECIPES_QUEUE_REQUEST_ERRORS_H

/**
 * @file
 * Errors of requests that do not show the state of the lock, such as a
 * connection loss.
 */

#include "recipes/queue/contender.h"

/** A request completed with `err`, which does not show the state of the lock:
    pause and retry, or fail, as lk__error_advice() says. */
void lk__contender_request_failed(lk_contender *ct, int err);
/** Called for each read and list that completed with `err`. If the reply was
    larger than the client accepts, it has broken the connection, and the
    connection loss has paused the contender. A retry on the next connection
    would break that as well, so the paused contender fails. Returns whether it
    has failed. */
bool lk__contender_fail_if_too_big(lk_contender *ct, int err);

#endif
