/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_handoff.h"
#include "recipes/local/local_request.h"
#include "recipes/queue/holding.h"

bool lk__local_handoff_is_allowed(const lk_local_queue *q)
{
  const lk_contender *node = q->node;

  return lk__local_queue_first(q) != NULL && q->handoffs < LK_MAX_HANDOFFS &&
         !node->holding.revoked && node->holding.unanswered_multis == 0 &&
         node->state == LK_CONTENDER_HELD;
}

void lk__local_handoff_to_first(lk_local_queue *q)
{
  lk_session_lease *lease = q->lease;

  if (lk__lease_may_grant(lease, lk_client_clock(lease->client))) {
    q->handoffs++;
    lk__local_request_grant(lk__local_queue_first(q));
  } else {
    lk__contender_await_lease(q->node);
  }
}
