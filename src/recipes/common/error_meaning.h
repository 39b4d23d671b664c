/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_ERROR_MEANING_H
#define LK_RECIPES_COMMON_ERROR_MEANING_H

#include "base/error_meaning.h"

#include <latchkey/client.h>

/**
 * @file
 * The table of base/error_meaning.c for callbacks of requests, and for requests
 * that were refused on the spot.
 */

/** A server says in a reply that a connection was lost: its own to the leader.
    The client's stands, so no new one follows. */
static inline bool lk__error_is_loss_behind_server(const lk_client *c, int err)
{
  return (err == LK_ERR_CONNECTION_LOSS || err == LK_ERR_IN_DOUBT) &&
         lk_client_reply(c) != NULL;
}

/** What is done after a request of a caller ended with `err`. */
static inline lk_advice lk__error_advice(const lk_client *c, int err)
{
  return lk__error_is_loss_behind_server(c, err)
             ? LK_ADVICE_GIVE_UP
             : lk__error_meaning(err).request;
}

/** The same of the deletion of a node that nobody needs any more. */
static inline lk_advice lk__error_cleanup_advice(const lk_client *c, int err)
{
  return lk__error_is_loss_behind_server(c, err)
             ? LK_ADVICE_GIVE_UP
             : lk__error_meaning(err).cleanup;
}

#endif
