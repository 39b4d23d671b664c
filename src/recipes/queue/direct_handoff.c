/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/direct_handoff.h"

#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"

/* A writer that was a predecessor may have downgraded before its node was
 * deleted: its read node then excludes an exclusive contender. */
bool lk__direct_handoff_is_proven(const lk_direct_handoff *h)
{
  return h->predecessors == 0 && h->same_connection && h->own_watched &&
         !(h->exclusive && h->has_rw_writer) && h->in_range && h->leased;
}

void lk__direct_handoff_try(lk_contender *ct)
{
  lk_client *c = lk__contender_client(ct);
  int64_t now = lk_client_clock(c);
  uint64_t connection = lk_client_connection(c);
  lk_direct_handoff h = {
      .predecessors = ct->predecessors.count,
      .same_connection =
          connection != 0 && connection == ct->predecessors.connection,
      .own_watched = ct->own.watch != NULL && ct->own.watched_on == connection,
      .exclusive = ct->role->exclusive,
      .has_rw_writer = ct->predecessors.has_rw_writer,
      .in_range = ct->predecessors.in_range,
      .leased = lk__contender_lease_suffices(ct, now)};

  if (lk__direct_handoff_is_proven(&h))
    lk__contender_try_grant(ct, now);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}
