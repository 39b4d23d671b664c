/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/queue.h"
#include "recipes/semaphore/permit_nodes.h"

#include <latchkey/semaphore.h>

/**
 * @file
 * The permit nodes of an acquisition, each with a contender. The contender of
 * the last one lists all permit nodes of the semaphore and compares their
 * number with the limit. The other contenders hold as soon as their nodes
 * exist.
 */

/* ---- which children count ----------------------------------------------- */

static bool name_is_permit(const lk_role *role, lk_bytes name, int64_t *number)
{
  lk_name n;

  *number = 0;
  if (role->kind == &lk__node_kind_kazoo_permit)
    return lk__name_is_hex(name);
  if (!lk__name_parse(role->format, name, &n) || n.kind != role->kind)
    return false;
  *number = n.number;
  return true;
}

void lk__permit_nodes_find_position(lk_queue_position *out, const lk_role *role,
                                    lk_bytes own, const lk_bytes *names,
                                    size_t count, size_t limit)
{
  int64_t number;

  /* All children of the directory count, whatever their names are. */
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < count; i++) {
    out->found = out->found || lk__names_are_equal(names[i], own);
    if (!name_is_permit(role, names[i], &number) &&
        lk__name_is_foreign(names[i]))
      out->foreign = names[i];
  }
  out->predecessors = count > limit ? count - limit : 0;
}

bool lk_layout_is_permit(lk_layout layout, lk_bytes name, int64_t *number)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);
  int64_t n;

  if (rules == NULL || rules->permit == NULL ||
      !name_is_permit(rules->permit, name, &n))
    return false;
  *number = n;
  return true;
}

static lk_semaphore_acquisition *
semaphore_of_member(const lk_joint_member *member)
{
  return (lk_semaphore_acquisition *)(void *)member->joint;
}

/* ---- release ----------------------------------------------------------- */

void lk__permit_nodes_drop(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->joint.acquisition;
  const bool report_gone = false;

  lk__joint_stop_members(&s->joint, report_gone);
  while (a->count > 0)
    lk__contender_unref(a->parts[--a->count]);
}

static void permit_nodes_drop_last(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->joint.acquisition;
  lk_contender *last = a->parts[--a->count];
  const bool report_gone = false;

  lk__contender_stop(last, report_gone);
  lk__contender_unref(last);
}

/* ---- callbacks of the contenders ----------------------------------------- */

static void permit_nodes_create_last(lk_semaphore_acquisition *s);

static bool others_are_held(const lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (i >= a->count || !lk__contender_holds(a->parts[i]))
      return false;
  }
  return true;
}

/* Whether the list of the last contender is newer than all other permit nodes
 * of this acquisition, so that it includes them. */
static bool has_listed_others(const lk_semaphore_acquisition *s,
                              const lk_contender *last)
{
  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (s->joint.acquisition.parts[i]->own.token > last->wait.listed_zxid)
      return false;
  }
  return true;
}

/* The last contender has found no more permit nodes than the limit. If the
 * server was busy or a connection was lost, some of our other nodes may not
 * have existed when it listed. Then its count was too low. So its node is
 * deleted, and created again when the others exist. */
static void last_granted(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;
  const lk_contender *last = a->parts[a->count - 1];
  bool others_held = others_are_held(s);

  if (!s->is_first) {
    lk__permit_nodes_drop(s); /* predecessors take their permits first */
  } else if (others_held && has_listed_others(s, last)) {
    s->reports->contender_granted(s);
  } else {
    permit_nodes_drop_last(s);
    if (others_held)
      permit_nodes_create_last(s);
  }
}

static void permit_granted(void *arg)
{
  const lk_joint_member *member = arg;
  lk_semaphore_acquisition *s = semaphore_of_member(member);
  size_t take = s->plan->take;

  lk__joint_ref(&s->joint);
  if (member->index + 1 == take)
    last_granted(s);
  else if (s->joint.acquisition.count + 1 == take && others_are_held(s))
    permit_nodes_create_last(s); /* last_granted() had dropped the last */
  else
    s->reports->contender_granted(s);
  lk__joint_unref(&s->joint);
}

static void permit_ended(void *arg, int err)
{
  lk_semaphore_acquisition *s = semaphore_of_member(arg);

  s->reports->failed(s, err);
}

static void permit_lost(void *arg, int err)
{
  lk_semaphore_acquisition *s = semaphore_of_member(arg);

  if (lk__joint_was_granted(&s->joint))
    lk__joint_end(&s->joint, err);
  else
    s->reports->lost(s, err);
}

/* All contenders are suspended at the same time. Only the notice of the first
 * is passed on, so that the owner gets one. */
static void permit_suspended(const lk_joint_member *member)
{
  if (lk__joint_was_granted(member->joint) && member->index == 0)
    lk__joint_notify_with_deadline(member->joint, LK_NOTICE_SUSPENDED);
}

static void permit_on_notice(void *arg, const lk_notice *notice)
{
  lk_joint_member *member = arg;
  lk_semaphore_acquisition *s = semaphore_of_member(member);
  lk_joint_acquisition *joint = member->joint;

  lk__joint_ref(joint);
  switch (notice->type) {
  case LK_NOTICE_WAITING: s->reports->waiting(s); break;
  case LK_NOTICE_SUSPENDED: permit_suspended(member); break;
  case LK_NOTICE_UNSURE: lk__joint_member_unsure(joint); break;
  case LK_NOTICE_LEASE_PROVEN: lk__joint_member_proven(joint); break;
  case LK_NOTICE_REVOKED: lk__joint_notify_revoked(joint); break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED: lk__joint_notify(joint, notice); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_COUNTER_NEAR_END: break;
  }
  lk__joint_unref(joint);
}

static const lk_acquisition_callbacks permit_callbacks = {
    .granted = permit_granted,
    .ended = permit_ended,
    .lost = permit_lost,
    .notice = permit_on_notice,
    .gone = lk__joint_member_gone};

/* ---- creation ------------------------------------------------------------ */

/* false: no memory, and the acquisition has ended. */
static bool permit_nodes_add(lk_semaphore_acquisition *s)
{
  bool is_last = s->joint.acquisition.count + 1 == s->plan->take;

  if (lk__joint_add(&s->joint, is_last ? &s->plan->counting : &s->plan->permit,
                    &permit_callbacks) != NULL)
    return true;
  lk__joint_end(&s->joint, LK_ERR_NO_MEMORY);
  return false;
}

static void permit_nodes_create_last(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  if (permit_nodes_add(s))
    lk__contender_begin(a->parts[a->count - 1]);
}

/* All contenders begin before control returns to the event loop. So their
 * creates are sent in one write, and the list of the last contender, which
 * follows, includes all of their nodes. */
void lk__permit_nodes_create(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;
  size_t take = s->plan->take;

  while (a->count < take) {
    if (!permit_nodes_add(s))
      return;
  }
  /* A contender that begins may end the acquisition or drop its nodes. */
  for (size_t i = 0; i < take && a->count == take && !s->joint.over; i++)
    lk__contender_begin(a->parts[i]);
}
