/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/multilock/multilock_nodes.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

bool lk__multilock_can_continue(const lk_multilock_acquisition *m)
{
  const lk_acquisition *a = &m->joint.acquisition;

  for (size_t i = 0; i < a->count; i++) {
    if (!lk__contender_holds(a->parts[i]))
      return false;
  }
  return a->count < m->plan->count;
}

/* ---- nodes in doubt ----------------------------------------------------- */

static void orphan_gone(void *arg, int err)
{
  lk_multilock_acquisition *m = arg;

  (void)err; /* the session lease reports a node that cannot be deleted */
  if (--m->orphans == 0 && !m->joint.over && lk__multilock_can_continue(m))
    m->create_missing(m);
  lk__joint_unref(&m->joint);
}

static void orphan_ignore_notice(void *arg, const lk_notice *notice)
{
  (void)arg;
  (void)notice;
}

static const lk_acquisition_callbacks orphan_callbacks = {
    .notice = orphan_ignore_notice, .gone = orphan_gone};

/* The name of the node is not known yet, so its delete cannot be sent before
 * the next transaction. The nodes of that transaction would wait for this one,
 * so the transaction is put off until this node is gone. */
static void multilock_drop_orphan(lk_multilock_acquisition *m, lk_contender *ct)
{
  bool has_ended = ct->callbacks == NULL;
  const bool report_gone = true;

  ct->callbacks = &orphan_callbacks;
  ct->callbacks_arg = m;
  m->orphans++;
  lk__joint_ref(&m->joint);
  if (!has_ended)
    lk__contender_stop(ct, report_gone);
}

void lk__multilock_drop_from(lk_multilock_acquisition *m, size_t from)
{
  lk_acquisition *a = &m->joint.acquisition;
  const bool report_gone = false;

  while (a->count > from) {
    lk_contender *ct = a->parts[--a->count];
    bool has_ended = ct->callbacks == NULL;

    if (ct->own.state == LK_OWN_REQUESTED || ct->own.state == LK_OWN_IN_DOUBT)
      multilock_drop_orphan(m, ct);
    else if (!has_ended)
      lk__contender_stop(ct, report_gone);
    lk__contender_unref(ct);
  }
}

lk_contender *lk__multilock_add_contender(lk_multilock_acquisition *m)
{
  return lk__joint_add(&m->joint, &m->plan->members[m->joint.acquisition.count],
                       m->member_callbacks);
}

/* ---- end ---------------------------------------------------------------- */

void lk__multilock_stop_listening(lk_joint_acquisition *joint)
{
  lk_multilock_acquisition *m = lk__multilock_of(joint);

  if (joint->lease->life.detached)
    return;
  lk__lease_stop_timer(joint->lease, &m->pause);
  if (m->listens)
    lk__lease_detach_listener(joint->lease, &m->listener);
  m->listens = false;
}

void lk__multilock_end(lk_multilock_acquisition *m, int err)
{
  lk_joint_acquisition *joint = &m->joint;

  if (joint->over)
    return;
  lk__joint_ref(joint);
  lk__joint_end(joint, err);
  lk__lease_listener_done(joint->lease);
  lk__joint_unref(joint);
}
