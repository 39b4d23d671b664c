/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/max_queue.h"

/* From this number of predecessors on a warning is logged. */
enum { LONG_QUEUE = 10000 };

int lk__max_queue_refusal(bool once, size_t max_queue, size_t predecessors)
{
  if (predecessors > 0 && once)
    return LK_ERR_BUSY;
  if (max_queue > 0 && predecessors > max_queue)
    return LK_ERR_QUEUE_FULL;
  return 0;
}

bool lk__max_queue_needs_peek(const lk_contender *ct)
{
  bool may_refuse = ct->config->once || ct->config->max_queue > 0;

  return ct->config->peek && may_refuse;
}

/* The reply to a list grows with the queue. A Java client refuses a reply with
 * more than 17,000 names. */
void lk__max_queue_warn_if_long(const lk_contender *ct, size_t predecessors)
{
  lk_session_lease *lease = ct->lease;

  if (predecessors < LONG_QUEUE || lease->queues.warned_length)
    return;
  lease->queues.warned_length = true;
  lk_client_log(lease->client, LK_LOG_WARNING, LK_ERR_TOO_MANY,
                "ten thousand contenders and more in one queue: think of "
                "max_queue, or of fewer contenders");
}
