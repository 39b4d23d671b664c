/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/load_balancing.h"

static bool has_probability(double probability, uint32_t random)
{
  return (double)random / 4294967296.0 < probability;
}

/* The list has grown, and each server of the old one has too many clients:
 * `after` servers have what `before` had. */
static lk_relocation balance_grown_list(double before, double after,
                                        bool listed, uint32_t random)
{
  return listed && has_probability(before / after, random)
             ? LK_RELOCATION_NONE
             : LK_RELOCATION_TO_ADDED;
}

/* The list has not grown, and the clients of servers that are gone are handed
 * out. Each server should end up with 1/after of all clients. One that was kept
 * has 1/before already; what these lack is handed out by the servers gone, of
 * which there were before - kept. */
static lk_relocation balance_shrunk_list(double before, double after,
                                         double kept, uint32_t random)
{
  double to_old = kept * (before - after) / (after * (before - kept));

  return has_probability(to_old, random) ? LK_RELOCATION_TO_KEPT
                                         : LK_RELOCATION_TO_ADDED;
}

lk_relocation lk__balance_load(const lk_list_change *change, uint32_t random)
{
  double before = (double)change->before;
  double after = (double)change->after;

  if (change->after > change->before)
    return balance_grown_list(before, after, change->listed, random);
  if (change->listed)
    return LK_RELOCATION_NONE;
  return balance_shrunk_list(before, after, (double)change->kept, random);
}
