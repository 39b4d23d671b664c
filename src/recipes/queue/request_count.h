/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_REQUEST_COUNT_H
#define LK_RECIPES_QUEUE_REQUEST_COUNT_H

/**
 * @file
 * The requests and replies of a contender are counted, so that the replies to
 * requests of an earlier round can be ignored.
 */

#include "recipes/queue/contender.h"

/** Count a request that was accepted, and take a reference for its callback.
    `err` is the result of the request function. Nothing is counted if it is not
    0. Returns `err`. */
int lk__contender_count_request(lk_contender *ct, int err);
/** Count a reply, at the start of each callback. false: the callback must
    ignore the reply, which belongs to an earlier round. In both cases, the
    callback ends with lk__contender_unref(). */
bool lk__contender_take_reply(lk_contender *ct);
/** Ignore the replies to all requests under way. */
void lk__contender_ignore_replies(lk_contender *ct);
/** Whether no request is outstanding. */
static inline bool lk__contender_has_all_replies(const lk_contender *ct)
{
  return ct->requests.sent == ct->requests.replied;
}
/** A read of a predecessor or of the own node completed: continue if no request
    is outstanding. */
void lk__contender_continue_if_all_read(lk_contender *ct);

#endif
