/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/handoff.h"

bool lk__handoff_is_proven(const lk_handoff *h)
{
  return h->predecessors == 0 && h->same_connection && h->own_watched &&
         !(h->exclusive && h->has_rw_writer) && h->in_range && h->leased;
}
