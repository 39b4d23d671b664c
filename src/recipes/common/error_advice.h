/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_ERROR_ADVICE_H
#define LK_RECIPES_COMMON_ERROR_ADVICE_H

#include "base/error_meaning.h"

#include <latchkey/client.h>

/**
 * @file
 * What a recipe does after an error: the table of base/error_meaning.c, for
 * callbacks of requests and for requests that were refused on the spot.
 */

/** A server says in a reply that a connection was lost: its own to the leader.
    The client's stands, so no new one follows. */
bool lk__error_is_loss_behind_server(const lk_client *c, int err);
/** What is done after a request of a caller ended with `err`. */
lk_advice lk__error_advice(const lk_client *c, int err);
/** The same of the deletion of a node that nobody needs any more. */
lk_advice lk__error_cleanup_advice(const lk_client *c, int err);

#endif
