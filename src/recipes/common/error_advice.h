/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_ERROR_ADVICE_H
#define LK_RECIPES_COMMON_ERROR_ADVICE_H

#include "base/error_meaning.h"

#include <latchkey/client.h>

/**
 * @file
 * What a recipe does after an error, by the table of base/error_meaning.c. For
 * callbacks of requests, and for errors that a request function returns.
 */

/** true: the reply of a server reports the loss of its connection to the
    leader. The client's connection stays, so no reconnect follows. */
bool lk__error_is_loss_behind_server(const lk_client *c, int err);
/** What to do after a request completed with `err`. */
lk_advice lk__error_advice(const lk_client *c, int err);
/** The same, for a request of a cleanup. */
lk_advice lk__error_cleanup_advice(const lk_client *c, int err);

#endif
