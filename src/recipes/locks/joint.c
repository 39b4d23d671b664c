/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/locks/joint.h"

#include "base/mem.h"
#include "recipes/queue/contender.h"

/* An acquisition ends when it has lost this many nodes before the grant. */
enum { MAX_LOST_NODES = 3 };

/* ---- creation and references --------------------------------------------- */

size_t lk__joint_room(size_t count)
{
  return count * (sizeof(lk_joint_part) + sizeof(lk_contender *));
}

void lk__joint_init(lk_joint_acquisition *joint, const lk_joint_kind *kind,
                    lk_session_lease *lease,
                    const lk_acquisition_callbacks *callbacks, void *arg,
                    void *room, size_t count)
{
  joint->kind = kind;
  joint->lease = lease;
  lk__client_ref(lease->client);
  joint->refs = 1;
  joint->callbacks = callbacks;
  joint->callbacks_arg = arg;
  joint->part_args = room;
  for (size_t i = 0; i < count; i++)
    joint->part_args[i] = (lk_joint_part){joint, i};
  joint->acquisition.kind = &kind->acquisition;
  /* The array of parts follows those arguments in `room`. */
  joint->acquisition.parts =
      (lk_contender **)(void *)(joint->part_args + count);
}

void lk__joint_ref(lk_joint_acquisition *joint)
{
  joint->refs++;
}

void lk__joint_unref(lk_joint_acquisition *joint)
{
  lk_session_lease *lease = joint->lease;

  if (--joint->refs > 0)
    return;
  for (size_t i = 0; i < joint->acquisition.count; i++)
    lk__contender_unref(joint->acquisition.parts[i]);
  lk__mem_free(&lease->mem, joint);
  lk__client_unref(lease->client);
}

/* ---- contenders ---------------------------------------------------------- */

lk_contender *lk__joint_add(lk_joint_acquisition *joint,
                            const lk_contender_config *config,
                            const lk_acquisition_callbacks *callbacks)
{
  lk_acquisition *a = &joint->acquisition;
  lk_contender *ct = lk__contender_new(joint->lease, config, callbacks,
                                       &joint->part_args[a->count]);

  if (ct == NULL)
    return NULL;
  lk__contender_ref(ct);
  a->parts[a->count++] = ct;
  return ct;
}

void lk__joint_stop_parts(lk_joint_acquisition *joint, lk_gone_report report)
{
  for (size_t i = 0; i < joint->acquisition.count; i++) {
    lk_contender *part = joint->acquisition.parts[i];
    bool has_ended = part->callbacks == NULL;

    if (!has_ended)
      lk__contender_stop(part, report);
  }
}

void lk__joint_part_gone(void *arg, int err)
{
  lk_joint_part *part = arg;
  lk_joint_acquisition *joint = part->joint;
  const lk_acquisition_callbacks *callbacks = joint->callbacks;

  if (err != 0)
    joint->not_deleted_err = err;
  if (--joint->gone_reports_due == 0) {
    joint->callbacks = NULL;
    if (callbacks != NULL)
      callbacks->gone(joint->callbacks_arg, joint->not_deleted_err);
  }
  lk__joint_unref(joint);
}

/* ---- end ----------------------------------------------------------------- */

/* The contenders are stopped and not freed: running callbacks may use them. */
static void joint_stop_contenders(lk_joint_acquisition *joint,
                                  lk_gone_report report)
{
  joint->over = true;
  joint->kind->before_stop(joint);
  lk__joint_stop_parts(joint, report);
  joint->kind->after_stop(joint);
}

void lk__joint_end(lk_joint_acquisition *joint, int err)
{
  const lk_acquisition_callbacks *callbacks = joint->callbacks;
  void (*report)(void *arg, int err) = NULL;

  if (joint->over)
    return;
  if (callbacks != NULL)
    report = lk__joint_was_granted(joint) ? callbacks->lost : callbacks->ended;

  joint->callbacks = NULL;
  joint_stop_contenders(joint, LK_NO_GONE_REPORT);
  if (report != NULL)
    report(joint->callbacks_arg, err);
  lk__joint_unref(joint);
}

bool lk__joint_begins_again_after_loss(lk_joint_acquisition *joint, int err)
{
  if (lk__client_end_err(joint->lease->client) != 0)
    return false;
  if (err == LK_ERR_SESSION_EXPIRED)
    return !joint->fail_on_expiry;
  joint->lost_nodes++;
  return joint->lost_nodes < MAX_LOST_NODES;
}

/* ---- notices ------------------------------------------------------------- */

void lk__joint_notify(lk_joint_acquisition *joint, const lk_notice *notice)
{
  if (joint->callbacks != NULL)
    joint->callbacks->notice(joint->callbacks_arg, notice);
}

void lk__joint_notify_with_deadline(lk_joint_acquisition *joint,
                                    lk_notice_type type)
{
  lk_notice notice = {.type = type,
                      .deadline_ms =
                          lk__acquisition_deadline(&joint->acquisition)};

  lk__joint_notify(joint, &notice);
}

void lk__joint_notify_revoked(lk_joint_acquisition *joint)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};
  bool any_revoked = false;

  for (size_t i = 0; i < joint->acquisition.count; i++)
    any_revoked = any_revoked || joint->acquisition.parts[i]->holding.revoked;
  if (!any_revoked || !lk__joint_was_granted(joint) || joint->over ||
      joint->owner_knows_revoked)
    return;
  joint->owner_knows_revoked = true;
  lk__joint_notify(joint, &notice);
}

void lk__joint_part_unsure(lk_joint_acquisition *joint)
{
  if (!lk__joint_was_granted(joint) || joint->owner_knows_unsure)
    return;
  joint->owner_knows_unsure = true;
  lk__joint_notify_with_deadline(joint, LK_NOTICE_UNSURE);
}

void lk__joint_part_proven(lk_joint_acquisition *joint)
{
  if (!lk__joint_was_granted(joint)) {
    joint->kind->try_grant(joint);
  } else if (joint->owner_knows_unsure &&
             !lk__acquisition_is_unsure(&joint->acquisition)) {
    joint->owner_knows_unsure = false;
    lk__joint_notify_with_deadline(joint, LK_NOTICE_LEASE_PROVEN);
  }
}

/* ---- functions of lk_acquisition_kind ------------------------------------ */

static lk_joint_acquisition *joint_of(lk_acquisition *a)
{
  return (lk_joint_acquisition *)(void *)a;
}

void lk__joint_stop(lk_acquisition *a, lk_gone_report report)
{
  lk_joint_acquisition *joint = joint_of(a);

  lk__joint_ref(joint);
  if (report == LK_NO_GONE_REPORT)
    joint->callbacks = NULL;
  /* Each contender that will report keeps a reference until it has done so. */
  joint->gone_reports_due = report == LK_GONE_REPORT ? a->count : 0;
  joint->refs += joint->gone_reports_due;
  joint_stop_contenders(joint, report);
  lk__joint_unref(joint); /* the reference of this function */
  lk__joint_unref(joint); /* the reference of the owner */
}

void lk__joint_remove_callbacks(lk_acquisition *a)
{
  joint_of(a)->callbacks = NULL;
}

void lk__joint_ref_acquisition(lk_acquisition *a)
{
  lk__joint_ref(joint_of(a));
}

void lk__joint_unref_acquisition(lk_acquisition *a)
{
  lk__joint_unref(joint_of(a));
}
