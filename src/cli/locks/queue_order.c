/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/locks/queue_order.h"

/* Deleted contenders come last. A reader with the same number as a writer
   belongs to that writer (a downgrade), and comes after it. */
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

/* The first contender in the queue of a semaphore creates the nodes of its
   permits before it knows whether so many permits are free. While it waits,
   these nodes look like those of a holder. They are called waiting permits
   here, and are not shown as held. */

/* Returns the first contender in the queue of a semaphore, or NULL. */
static const cli_contender *first_in_queue(const cli_contender *all,
                                           size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (!all[i].permit && !all[i].gone)
      return &all[i];
  }
  return NULL;
}

static bool is_of_same_session(const cli_contender *c,
                               const cli_contender *first)
{
  return !c->gone && !c->hidden &&
         c->stat.ephemeral_owner == first->stat.ephemeral_owner;
}

/* Whether `c` is a permit of the session of `first` that is newer than the
   queue node of `first`. */
static bool can_be_waiting_permit(const cli_contender *c,
                                  const cli_contender *first)
{
  return c->permit && is_of_same_session(c, first) &&
         c->stat.czxid > first->stat.czxid;
}

/* Whether the session of `first` has other queue nodes or older permits, as a
   program with many threads has. */
static bool has_several_contenders(const cli_contender *all, size_t count,
                                   const cli_contender *first)
{
  for (size_t i = 0; i < count; i++) {
    if (&all[i] != first && is_of_same_session(&all[i], first) &&
        !can_be_waiting_permit(&all[i], first))
      return true;
  }
  return false;
}

static size_t count_permits(const cli_contender *all, size_t count)
{
  size_t permits = 0;

  for (size_t i = 0; i < count; i++)
    if (all[i].permit && !all[i].gone)
      permits++;
  return permits;
}

static size_t count_possible_waiting_permits(const cli_contender *all,
                                             size_t count,
                                             const cli_contender *first)
{
  size_t permits = 0;

  for (size_t i = 0; i < count; i++)
    if (can_be_waiting_permit(&all[i], first))
      permits++;
  return permits;
}

/* The two functions below unmark permits that can be waiting permits of
   `first`. */

static void unmark_newest_permit(cli_contender *all, size_t count,
                                 const cli_contender *first)
{
  cli_contender *newest = NULL;

  for (size_t i = 0; i < count; i++) {
    if (can_be_waiting_permit(&all[i], first) &&
        (newest == NULL || all[i].stat.czxid > newest->stat.czxid))
      newest = &all[i];
  }
  if (newest != NULL)
    newest->holds = false;
}

static void unmark_all_permits(cli_contender *all, size_t count,
                               const cli_contender *first)
{
  for (size_t i = 0; i < count; i++) {
    if (can_be_waiting_permit(&all[i], first))
      all[i].holds = false;
  }
}

/* Unmarks the waiting permits. The permit limit is not known here, but a
   contender waits only while other sessions hold permits. So if all permits
   can be those of the first contender, it does not wait: they are held. */
static void unmark_waiting_permits(cli_contender *all, size_t count)
{
  const cli_contender *first = first_in_queue(all, count);
  size_t permits = count_permits(all, count);

  /* By this rule a single permit is held. */
  if (first == NULL || first->hidden || permits < 2)
    return;
  /* Nothing shows which permits of a session belong to which of its threads.
     One is unmarked, as a thread usually takes one permit. */
  if (has_several_contenders(all, count, first))
    unmark_newest_permit(all, count, first);
  else if (count_possible_waiting_permits(all, count, first) < permits)
    unmark_all_permits(all, count, first);
}

size_t cli_queue_mark_permit_holders(cli_contender *all, size_t count)
{
  size_t kept = 0;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (size_t i = 0; i < count; i++)
    all[i].holds = all[i].permit && !all[i].gone;
  unmark_waiting_permits(all, count);
  for (size_t i = 0; i < count; i++) {
    cli_contender c = all[i];
    bool waiting_permit = c.permit && !c.holds;

    if (c.gone || waiting_permit)
      continue;
    /* Swapped, so that dropped contenders stay in the array and are freed. */
    all[i] = all[kept];
    all[kept++] = c;
  }
  return kept;
}

/* ---- locks --------------------------------------------------------------- */

size_t cli_queue_mark_lock_holders(cli_contender *all, size_t count)
{
  bool writer_seen = false;
  size_t i;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (i = 0; i < count && !all[i].gone; i++) {
    /* A holding writer that has downgraded has a reader of the same number. */
    bool downgraded = all[i].shared && all[i].number == all[0].number;
    bool before_writers = all[i].shared && !writer_seen;

    all[i].holds = i == 0 || before_writers || downgraded;
    writer_seen = writer_seen || !all[i].shared;
  }
  return i;
}
