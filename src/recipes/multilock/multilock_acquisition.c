/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/multilock/multilock_acquisition.h"
#include "recipes/multilock/transaction.h"
#include "recipes/queue/lease.h"

/* ---- end ----------------------------------------------------------------- */

/* Nothing is left to do when the contenders are stopped. */
static void multilock_after_stop(lk_joint_acquisition *joint)
{
  (void)joint;
}

static void multilock_begin_again(lk_multilock_acquisition *m, int err)
{
  lk_joint_acquisition *joint = &m->joint;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  if (!lk__joint_begins_again_after_loss(joint, err)) {
    lk__multilock_end(m, err);
    return;
  }
  lk__joint_ref(joint);
  if (m->in_transaction) {
    /* The nodes can be deleted when the reply has given their names. */
    m->begin_again = true;
  } else {
    lk__multilock_drop_all(m);
    lk__multilock_begin_transaction(m);
  }
  lk__joint_notify(joint, &notice);
  lk__joint_unref(joint);
}

/* ---- callbacks of the contenders ----------------------------------------- */

static void multilock_try_grant(lk_joint_acquisition *joint)
{
  lk_multilock_acquisition *m = lk__multilock_of(joint);

  if (m->begin_again || joint->acquisition.count < m->plan->count)
    return;
  if (lk__acquisition_try_grant(&joint->acquisition) &&
      joint->callbacks != NULL)
    joint->callbacks->granted(joint->callbacks_arg);
  lk__joint_notify_revoked(joint);
}

static void member_granted(void *arg)
{
  lk_joint_member *member = arg;
  lk_joint_acquisition *joint = member->joint;
  lk_multilock_acquisition *m = lk__multilock_of(joint);

  lk__joint_ref(joint);
  if (joint->acquisition.count == m->plan->count)
    multilock_try_grant(joint);
  else if (lk__multilock_can_continue(m))
    lk__multilock_begin_transaction(m);
  lk__joint_unref(joint);
}

static void member_ended(void *arg, int err)
{
  lk_joint_member *member = arg;

  if (err == LK_ERR_SESSION_EXPIRED)
    multilock_begin_again(lk__multilock_of(member->joint), err);
  else
    lk__multilock_end(lk__multilock_of(member->joint), err);
}

static void member_lost(void *arg, int err)
{
  lk_joint_member *member = arg;

  if (lk__joint_was_granted(member->joint))
    lk__multilock_end(lk__multilock_of(member->joint), err);
  else
    multilock_begin_again(lk__multilock_of(member->joint), err);
}

/* All contenders are suspended at the same time. Only the first notice is
 * passed on, so that the owner gets one. */
static void member_suspended(lk_multilock_acquisition *m)
{
  if (!lk__joint_was_granted(&m->joint) || m->suspended)
    return;
  m->suspended = true;
  lk__joint_notify_with_deadline(&m->joint, LK_NOTICE_SUSPENDED);
}

/* A contender has to wait, so the nodes of later members are deleted. Otherwise
 * there could be a deadlock with a client that acquires the same locks one by
 * one. That client could hold the lock we wait for, and wait for the lock of a
 * later member. */
static void member_waiting(const lk_joint_member *member,
                           const lk_notice *notice)
{
  lk_joint_acquisition *joint = member->joint;

  if (member->index + 1 < joint->acquisition.count)
    lk__multilock_drop_from(lk__multilock_of(joint), member->index + 1);
  lk__joint_notify(joint, notice);
}

static void member_on_notice(void *arg, const lk_notice *notice)
{
  lk_joint_member *member = arg;
  lk_joint_acquisition *joint = member->joint;

  lk__joint_ref(joint);
  switch (notice->type) {
  case LK_NOTICE_WAITING: member_waiting(member, notice); break;
  case LK_NOTICE_SUSPENDED: member_suspended(lk__multilock_of(joint)); break;
  case LK_NOTICE_UNSURE: lk__joint_member_unsure(joint); break;
  case LK_NOTICE_LEASE_PROVEN: lk__joint_member_proven(joint); break;
  case LK_NOTICE_REVOKED: lk__joint_notify_revoked(joint); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED:
  case LK_NOTICE_COUNTER_NEAR_END: lk__joint_notify(joint, notice); break;
  }
  lk__joint_unref(joint);
}

static const lk_acquisition_callbacks member_callbacks = {
    .granted = member_granted,
    .ended = member_ended,
    .lost = member_lost,
    .notice = member_on_notice,
    .gone = lk__joint_member_gone};

/* ---- callbacks of the client --------------------------------------------- */

static void multilock_on_pause_over(lk_client *c, void *arg)
{
  lk_multilock_acquisition *m = arg;

  if (lk_client_state(c) == LK_STATE_EXPIRED) /* no new session was started */
    lk__multilock_end(m, LK_ERR_SESSION_EXPIRED);
  else if (lk__multilock_can_continue(m))
    lk__multilock_begin_transaction(m);
}

static void multilock_on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_multilock_acquisition *m = arg;
  lk_session_lease *lease = m->joint.lease;

  (void)err;
  lk__joint_ref(&m->joint);
  switch (state) {
  case LK_STATE_CONNECTED:
    m->suspended = false;
    if (lk__multilock_can_continue(m))
      lk__multilock_begin_transaction(m);
    break;
  case LK_STATE_EXPIRED:
    m->session_denied = 0;
    /* The timer fires in the next turn of the loop. */
    lk__lease_start_timer(lease, &m->pause, lk_client_input_ms(c));
    break;
  case LK_STATE_AUTH_FAILED:
  case LK_STATE_CLOSED: lk__multilock_end(m, lease->end_err); break;
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  lk__joint_unref(&m->joint);
}

static void multilock_on_closing(lk_client *c, void *arg)
{
  lk_multilock_acquisition *m = arg;

  (void)c;
  lk__multilock_end(m, m->joint.lease->end_err);
}

/* ---- functions of lk_acquisition_kind ------------------------------------ */

static void multilock_begin(lk_acquisition *a)
{
  lk_multilock_acquisition *m = (lk_multilock_acquisition *)(void *)a;

  m->listens = true;
  lk__lease_attach_listener(m->joint.lease, &m->listener);
  lk__multilock_begin_transaction(m);
}

static void multilock_stop(lk_acquisition *a, bool report_gone)
{
  lk_joint_acquisition *joint = (lk_joint_acquisition *)(void *)a;

  lk__joint_ref(joint);
  if (!report_gone)
    joint->callbacks = NULL;
  joint->over = true;
  lk__multilock_stop_listening(joint);
  lk__lease_listener_done(joint->lease);
  lk__joint_stop(a, report_gone);
  lk__joint_unref(joint);
}

static const lk_joint_kind multilock_kind = {
    .acquisition = {.begin = multilock_begin,
                    .stop = multilock_stop,
                    .remove_callbacks = lk__joint_remove_callbacks,
                    .ref = lk__joint_ref_acquisition,
                    .unref = lk__joint_unref_acquisition},
    .try_grant = multilock_try_grant,
    .before_stop = lk__multilock_stop_listening,
    .after_stop = multilock_after_stop};

lk_multilock_acquisition *
lk__multilock_acquisition_new(lk_session_lease *lease, lk_multilock_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg)
{
  lk_multilock_acquisition *m =
      lk__mem_new(&lease->mem, sizeof *m + lk__joint_room(plan->count));

  if (m == NULL)
    return NULL;
  lk__joint_init(&m->joint, &multilock_kind, lease, callbacks, arg, m + 1,
                 plan->count);
  m->joint.fail_on_expiry = plan->fail_on_expiry;
  m->plan = plan;
  m->member_callbacks = &member_callbacks;
  m->create_missing = lk__multilock_begin_transaction;
  m->listener = (lk_listener){
      .state = multilock_on_state, .closing = multilock_on_closing, .arg = m};
  m->pause = (lk_timer){.fire = multilock_on_pause_over, .arg = m};
  return m;
}
