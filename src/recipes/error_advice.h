/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_ERROR_ADVICE_H
#define LK_RECIPES_ERROR_ADVICE_H

/**
 * @file
 * What a recipe does after an error: the table of base/error_meaning.c, with
 * one exception, and what the reply to a transaction shows. The functions are
 * for callbacks of requests, and for errors that a request function returns.
 */

#include <latchkey/client.h>

#include "base/error_meaning.h"

/** Whether `err` is a connection loss that a server has reported in a reply:
    the server lost its connection to the leader. The connection of the client
    stays, so a recipe must not wait for a reconnect. */
bool lk__error_is_loss_behind_server(const lk_client *c, int err);
/** What to do after a request completed with `err`. A connection loss that a
    server has reported is given up. */
lk_advice lk__error_advice(const lk_client *c, int err);
/** What to do after a request of a cleanup completed with `err`. A connection
    loss that a server has reported is tried again later. */
lk_advice lk__error_cleanup_advice(const lk_client *c, int err);

/** The error of a write that was not executed so far, and whose next request
    was refused with `err`. */
int lk__error_of_unsent(int err);

/** Whether the leader has ordered the transaction whose callback runs, with
    success or an error. Then each write that was sent on an earlier connection
    was executed before it, or never will be. */
bool lk__transaction_was_ordered(const lk_client *c);

#endif
