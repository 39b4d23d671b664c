/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/semaphore/semaphore_acquisition.h"

/**
 * @file
 * The permit nodes of an acquisition. The contender of the last one lists all
 * permit nodes and compares their number with the limit.
 */

static lk_semaphore_acquisition *
semaphore_of_member(const lk_group_member *member)
{
  return (lk_semaphore_acquisition *)(void *)member->group;
}

/* ---- release ----------------------------------------------------------- */

void lk__permit_nodes_drop(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->group.acquisition;

  lk__group_stop_members(&s->group, false);
  while (a->count > 0)
    lk__contender_unref(a->parts[--a->count]);
}

static void permit_nodes_drop_last(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->group.acquisition;
  lk_contender *last = a->parts[--a->count];

  lk__contender_stop(last, false);
  lk__contender_unref(last);
}

/* ---- callbacks of the contenders ----------------------------------------- */

static void permit_nodes_create_last(lk_semaphore_acquisition *s);

static bool others_are_held(const lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->group.acquisition;

  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (i >= a->count || !lk__contender_holds(a->parts[i]))
      return false;
  }
  return true;
}

/* The list of the last contender includes all other permit nodes. */
static bool has_listed_others(const lk_semaphore_acquisition *s,
                              const lk_contender *last)
{
  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (s->group.acquisition.parts[i]->own.token > last->wait.listed_zxid)
      return false;
  }
  return true;
}

/* The other permit nodes may not have existed when the last contender listed:
 * the server was busy, or a connection was lost. Then its count was too low,
 * and its node is created again when the others exist. */
static void last_granted(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->group.acquisition;
  const lk_contender *last = a->parts[a->count - 1];
  bool others = others_are_held(s);

  if (!s->first) {
    lk__permit_nodes_drop(s); /* the queue node has predecessors */
  } else if (others && has_listed_others(s, last)) {
    lk__semaphore_try_grant(s);
  } else {
    permit_nodes_drop_last(s);
    if (others)
      permit_nodes_create_last(s);
  }
}

static void permit_granted(void *arg)
{
  const lk_group_member *member = arg;
  lk_semaphore_acquisition *s = semaphore_of_member(member);
  size_t take = s->plan->take;

  lk__group_ref(&s->group);
  if (member->index + 1 == take)
    last_granted(s);
  else if (s->group.acquisition.count + 1 == take && others_are_held(s))
    permit_nodes_create_last(s);
  else
    lk__semaphore_try_grant(s);
  lk__group_unref(&s->group);
}

static void permit_ended(void *arg, int err)
{
  lk__semaphore_failed(semaphore_of_member(arg), err);
}

static void permit_lost(void *arg, int err)
{
  lk_semaphore_acquisition *s = semaphore_of_member(arg);

  if (s->group.acquisition.whole)
    lk__group_end(&s->group, err);
  else
    lk__semaphore_begin_again(s, err);
}

/* Each contender is suspended; the notice of the first stands for all. */
static void permit_suspended(const lk_group_member *member)
{
  if (member->group->acquisition.whole && member->index == 0)
    lk__group_notify_whole(member->group, LK_NOTICE_SUSPENDED);
}

static void permit_on_notice(void *arg, const lk_notice *notice)
{
  lk_group_member *member = arg;
  lk_contender_group *g = member->group;

  lk__group_ref(g);
  switch (notice->type) {
  case LK_NOTICE_WAITING:
    lk__semaphore_notify_first(semaphore_of_member(member));
    break;
  case LK_NOTICE_SUSPENDED: permit_suspended(member); break;
  case LK_NOTICE_UNSURE: lk__group_member_unsure(g); break;
  case LK_NOTICE_LEASE_PROVEN: lk__group_member_proven(g); break;
  case LK_NOTICE_REVOKED: lk__group_notify_revoked(g); break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED: lk__group_notify(g, notice); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_COUNTER_NEAR_END: break;
  }
  lk__group_unref(g);
}

static const lk_acquisition_callbacks permit_callbacks = {
    .granted = permit_granted,
    .ended = permit_ended,
    .lost = permit_lost,
    .notice = permit_on_notice,
    .gone = lk__group_member_gone};

/* ---- creation ------------------------------------------------------------ */

/* false: no memory, and the acquisition has ended. */
static bool permit_nodes_add(lk_semaphore_acquisition *s)
{
  bool last = s->group.acquisition.count + 1 == s->plan->take;

  if (lk__group_add(&s->group, last ? &s->plan->counting : &s->plan->permit,
                    &permit_callbacks) != NULL)
    return true;
  lk__group_end(&s->group, LK_ERR_NO_MEMORY);
  return false;
}

static void permit_nodes_create_last(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->group.acquisition;

  if (permit_nodes_add(s))
    lk__contender_begin(a->parts[a->count - 1]);
}

/* All begin without a return to the event loop. So their creates are sent in
 * one write, and the list of the last contender includes all of them. */
void lk__permit_nodes_create(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->group.acquisition;
  size_t take = s->plan->take;

  while (a->count < take) {
    if (!permit_nodes_add(s))
      return;
  }
  for (size_t i = 0; i < take && a->count == take && !s->group.over; i++)
    lk__contender_begin(a->parts[i]);
}
