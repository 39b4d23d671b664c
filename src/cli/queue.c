/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/queue.h"

/* A reader with a writer's number is that writer's own, and comes after it. */
static int compare(const void *a, const void *b)
{
  const cli_contender *x = a;
  const cli_contender *y = b;

  if (x->gone != y->gone)
    return x->gone ? 1 : -1;
  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  if (x->shared != y->shared)
    return x->shared ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* The permits that the first in the queue waits with are younger than its
 * place. */
size_t cli_queue_order_permits(cli_contender *all, size_t count)
{
  int64_t first = INT64_MAX;
  size_t kept = 0;

  if (count > 0)
    qsort(all, count, sizeof *all, compare);
  for (size_t i = 0; i < count; i++) {
    if (!all[i].lease && !all[i].gone && !all[i].hidden &&
        all[i].stat.czxid < first)
      first = all[i].stat.czxid;
  }
  for (size_t i = 0; i < count; i++) {
    cli_contender c = all[i];

    c.holds = c.lease;
    if (c.gone || (c.lease && c.stat.czxid > first))
      continue;
    all[i] = all[kept];
    all[kept++] = c;
  }
  return kept;
}

size_t cli_queue_order(cli_contender *all, size_t count)
{
  bool writer = false;
  size_t i;

  if (count > 0)
    qsort(all, count, sizeof *all, compare);
  for (i = 0; i < count && !all[i].gone; i++) {
    bool own = i > 0 && all[i].number == all[0].number;

    all[i].holds = i == 0 || (all[i].shared && (!writer || own));
    writer = writer || !all[i].shared;
  }
  return i;
}
