/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCKS_JOINT_H
#define LK_RECIPES_LOCKS_JOINT_H

/**
 * @file
 * A joint acquisition: several contenders that are held together or not at all.
 * The acquisitions of a multi-lock and of a semaphore embed one as their first
 * member.
 */

#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

typedef struct lk_joint_acquisition lk_joint_acquisition;

/** The argument of a contender's callbacks. */
typedef struct lk_joint_part {
  lk_joint_acquisition *joint;
  size_t index; /**< of the contender in `acquisition.parts` */
} lk_joint_part;

typedef struct lk_joint_kind {
  lk_acquisition_kind acquisition;
  /** Grant the acquisition if all its contenders hold. */
  void (*try_grant)(lk_joint_acquisition *joint);
  /** When the acquisition has ended or was stopped, these are called before and
      after its contenders are stopped. */
  void (*before_stop)(lk_joint_acquisition *joint);
  void (*after_stop)(lk_joint_acquisition *joint);
} lk_joint_kind;

struct lk_joint_acquisition {
  lk_acquisition acquisition; /* `parts`: the contenders that exist now */
  const lk_joint_kind *kind;
  lk_session_lease *lease;
  size_t refs; /* of the owner, of requests, of callers, and of contenders that
                  will report when their nodes are gone */
  const lk_acquisition_callbacks *callbacks; /* NULL: the owner wants no more */
  void *callbacks_arg;
  bool fail_on_expiry;
  bool over;                /* ended or stopped */
  bool owner_knows_unsure;  /* the owner was notified of UNSURE, and not yet of
                               LEASE_PROVEN */
  bool owner_knows_revoked; /* the owner was notified of REVOKED */
  size_t gone_reports_due;  /* contenders that will report when their nodes are
                               gone */
  int not_deleted_err;      /* why one of the nodes was not deleted, or 0 */
  unsigned lost_nodes;      /* number of nodes lost before the grant */
  lk_joint_part *part_args; /* one for each contender that may exist */
};

/** Whether the owner was notified of the grant. */
static inline bool lk__joint_was_granted(const lk_joint_acquisition *joint)
{
  return joint->acquisition.held_with_parts;
}

/** The number of bytes that lk__joint_init() needs at `room` for `count`
    contenders. */
size_t lk__joint_room(size_t count);
/** `joint` and `room` must be zeroed, in one allocation that begins with
    `joint`. The last lk__joint_unref() frees it. */
void lk__joint_init(lk_joint_acquisition *joint, const lk_joint_kind *kind,
                    lk_session_lease *lease,
                    const lk_acquisition_callbacks *callbacks, void *arg,
                    void *room, size_t count);
void lk__joint_ref(lk_joint_acquisition *joint);
void lk__joint_unref(lk_joint_acquisition *joint);

/** Make the next contender and append it to the parts. The caller
    begins it. NULL: no memory. */
lk_contender *lk__joint_add(lk_joint_acquisition *joint,
                            const lk_contender_config *config,
                            const lk_acquisition_callbacks *callbacks);
/** Stop all contenders. With LK_GONE_REPORT each invokes its callback `gone`
    when its node is gone. */
void lk__joint_stop_parts(lk_joint_acquisition *joint, lk_gone_report report);

/** End the acquisition with `err`. The owner is notified by the callback `lost`
    if the lock was granted, else by `ended`. */
void lk__joint_end(lk_joint_acquisition *joint, int err);
/** A contender lost its node or its session before the grant. true: the
    acquisition may begin again; false: it has to end. */
bool lk__joint_begins_again_after_loss(lk_joint_acquisition *joint, int err);

/** Notify the owner, if it has callbacks. */
void lk__joint_notify(lk_joint_acquisition *joint, const lk_notice *notice);
/** Notify the owner with the lease deadline of the acquisition. */
void lk__joint_notify_with_deadline(lk_joint_acquisition *joint,
                                    lk_notice_type type);
/** Notify the owner once if the revocation of a contender was requested. No
    effect before the grant. */
void lk__joint_notify_revoked(lk_joint_acquisition *joint);
/** A contender became unsure. */
void lk__joint_part_unsure(lk_joint_acquisition *joint);
/** The lease of a contender was proven. Before the grant, try to grant. After
    it, notify the owner if the acquisition is no longer unsure. */
void lk__joint_part_proven(lk_joint_acquisition *joint);
/** The callback `gone` of a contender; `arg` is its lk_joint_part. */
void lk__joint_part_gone(void *arg, int err);

/* Functions for the table lk_acquisition_kind. */
void lk__joint_stop(lk_acquisition *a, lk_gone_report report);
void lk__joint_remove_callbacks(lk_acquisition *a);
void lk__joint_ref_acquisition(lk_acquisition *a);
void lk__joint_unref_acquisition(lk_acquisition *a);

#endif
