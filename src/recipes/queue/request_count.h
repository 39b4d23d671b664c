/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_REQUEST_COUNT_H
#define LK_RECIPES_QUEUE_REQUEST_COUNT_H

/**
 * @file
 * The requests of a contender are counted, so that the reply to an earlier
 * round is known as such.
 */

#include "recipes/queue/contender.h"

/** `err`: what a request function returned, which is returned. A request that
    was accepted is counted, and holds a reference. */
int lk__contender_count_request(lk_contender *ct, int err);
/** At the start of each callback. false: the reply belongs to an earlier round,
    and is ignored. lk__contender_unref() ends the callback. */
bool lk__contender_take_reply(lk_contender *ct);
/** Ignore the replies to all requests under way. */
void lk__contender_ignore_replies(lk_contender *ct);
/** No request is outstanding. */
static inline bool lk__contender_has_all_replies(const lk_contender *ct)
{
  return ct->requests.sent == ct->requests.replied;
}
/** A read of a predecessor or of the own node completed: continue if it was the
    last of its round. */
void lk__contender_continue_if_all_read(lk_contender *ct);

#endif
