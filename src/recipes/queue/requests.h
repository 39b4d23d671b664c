/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_REQUESTS_H
#define LK_RECIPES_QUEUE_REQUESTS_H

/**
 * @file
 * The requests of a contender: counted, so that the reply to an earlier round
 * is known as such; and the pauses after a server has refused one.
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

/** A request completed with `err`, which says nothing about the lock: pause, or
    fail. */
void lk__contender_request_failed(lk_contender *ct, int err);
/** If a read completed since its reply is larger than the client accepts: fail.
    Such a reply breaks the connection, which is reported first; a contender
    that paused would request the same on each connection. */
bool lk__contender_fail_if_too_big(lk_contender *ct, int err);

/** Pause; lk__contender_resume() follows. */
void lk__contender_start_pause(lk_contender *ct, int64_t ms);
/** How long: doubled with each pause in a row, plus a random part. */
int64_t lk__contender_pause_ms(lk_contender *ct);

#endif
