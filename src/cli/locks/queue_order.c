/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/locks/queue_order.h"

/* A reader with a writer's number comes after it: it is the writer's own, after
   a downgrade. */
static int compare_contenders(const void *a, const void *b)
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

/* ---- permits ------------------------------------------------------------- */

/* Returns the first contender in the queue of a semaphore, or NULL. Only the
   first one waits with permits of its own. */
static const cli_contender *first_in_queue(const cli_contender *all,
                                           size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (!all[i].permit && !all[i].gone)
      return &all[i];
  }
  return NULL;
}

static bool has_owner(const cli_contender *c, const cli_contender *first)
{
  return !c->gone && !c->hidden &&
         c->stat.ephemeral_owner == first->stat.ephemeral_owner;
}

/* Whether `c` is a permit of the session of `first` that is newer than the
   queue node of `first`. */
static bool waits_for_permits(const cli_contender *c,
                              const cli_contender *first)
{
  return c->permit && has_owner(c, first) && c->stat.czxid > first->stat.czxid;
}

/* Whether the session of `first` has other queue nodes or older permits, as a
   program with many threads has. */
static bool has_several_contenders(const cli_contender *all, size_t count,
                                   const cli_contender *first)
{
  for (size_t i = 0; i < count; i++) {
    if (&all[i] != first && has_owner(&all[i], first) &&
        !waits_for_permits(&all[i], first))
      return true;
  }
  return false;
}

static size_t count_permit_nodes(const cli_contender *all, size_t count,
                                 const cli_contender *first)
{
  size_t n = 0;

  for (size_t i = 0; i < count; i++) {
    if (all[i].permit && !all[i].gone &&
        (first == NULL || waits_for_permits(&all[i], first)))
      n++;
  }
  return n;
}

static void unmark_youngest_permit(cli_contender *all, size_t count,
                                   const cli_contender *first)
{
  cli_contender *youngest = NULL;

  for (size_t i = 0; i < count; i++) {
    if (waits_for_permits(&all[i], first) &&
        (youngest == NULL || all[i].stat.czxid > youngest->stat.czxid))
      youngest = &all[i];
  }
  if (youngest != NULL)
    youngest->holds = false;
}

/* Unmarks the permits with which the first contender waits. The permit limit is
   not known here. The first contender waits because other sessions hold
   permits, so not all permits can be its own. If its session has more queue
   nodes, its waiting permits cannot be distinguished: only one is unmarked, as
   one thread takes one permit at a time. */
static void unmark_waiting_permits(cli_contender *all, size_t count)
{
  const cli_contender *first = first_in_queue(all, count);
  size_t permits = count_permit_nodes(all, count, NULL);

  if (first == NULL || first->hidden || permits < 2)
    return;
  bool all_its_own = count_permit_nodes(all, count, first) == permits;

  if (has_several_contenders(all, count, first))
    unmark_youngest_permit(all, count, first);
  for (size_t i = 0; !has_several_contenders(all, count, first) && i < count;
       i++)
    all[i].holds =
        all[i].holds && (all_its_own || !waits_for_permits(&all[i], first));
}

size_t cli_queue_order_permits(cli_contender *all, size_t count)
{
  size_t kept = 0;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (size_t i = 0; i < count; i++)
    all[i].holds = all[i].permit && !all[i].gone;
  unmark_waiting_permits(all, count);
  for (size_t i = 0; i < count; i++) {
    cli_contender c = all[i];

    if (c.gone || (c.permit && !c.holds))
      continue;
    all[i] = all[kept];
    all[kept++] = c;
  }
  return kept;
}

/* ---- locks --------------------------------------------------------------- */

size_t cli_queue_order_locks(cli_contender *all, size_t count)
{
  bool writer = false;
  size_t i;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (i = 0; i < count && !all[i].gone; i++) {
    bool own = i > 0 && all[i].number == all[0].number;

    all[i].holds = i == 0 || (all[i].shared && (!writer || own));
    writer = writer || !all[i].shared;
  }
  return i;
}
