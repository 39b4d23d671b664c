/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/load_balancing.h"

/* Draw true with this probability. `random` is uniform over its 2^32 values. */
static bool draw(double probability, uint32_t random)
{
  const double values = 4294967296.0; /* 2^32 */

  return (double)random / values < probability;
}

/* The list has more servers than before. A kept server keeps before/after of
 * its clients; the others move to added servers. */
static lk_relocation balance_grown_list(double before, double after,
                                        bool listed, uint32_t random)
{
  return listed && draw(before / after, random) ? LK_RELOCATION_NONE
                                                : LK_RELOCATION_TO_ADDED;
}

/* The list has no more servers than before. Only the clients of the removed
 * servers move, of which there are before - kept. Each server should have
 * 1/after of all clients in the end. A kept server has 1/before of them
 * already, and gets the rest from the removed servers. */
static lk_relocation balance_shrunk_list(double before, double after,
                                         double kept, uint32_t random)
{
  double to_kept = kept * (before - after) / (after * (before - kept));

  return draw(to_kept, random) ? LK_RELOCATION_TO_KEPT : LK_RELOCATION_TO_ADDED;
}

lk_relocation lk__choose_relocation(const lk_list_change *change,
                                    uint32_t random)
{
  double before = (double)change->before;
  double after = (double)change->after;

  if (change->after > change->before)
    return balance_grown_list(before, after, change->listed, random);
  if (change->listed)
    return LK_RELOCATION_NONE;
  return balance_shrunk_list(before, after, (double)change->kept, random);
}
