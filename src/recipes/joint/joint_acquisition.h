/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_JOINT_JOINT_ACQUISITION_H
#define LK_RECIPES_JOINT_JOINT_ACQUISITION_H

/**
 * @file
 * A joint acquisition: several contenders that are held together or not at all.
 * The acquisitions of a multi-lock and of a semaphore embed one as their first
 * member.
 */

#include "recipes/lease/session_lease.h"
#include "recipes/queue/acquisition_holding.h"
#include "recipes/queue/contender.h"

typedef struct lk_joint_acquisition lk_joint_acquisition;

/** The argument of a contender's callbacks. */
typedef struct lk_joint_member {
  lk_joint_acquisition *joint;
  size_t index;
} lk_joint_member;

typedef struct lk_joint_kind {
  lk_acquisition_kind acquisition;
  /** Grants the whole if all of it is held. */
  void (*try_grant)(lk_joint_acquisition *joint);
  /** The acquisition has ended or was stopped: before and after its contenders
     are stopped. */
  void (*before_stop)(lk_joint_acquisition *joint);
  void (*after_stop)(lk_joint_acquisition *joint);
} lk_joint_kind;

struct lk_joint_acquisition {
  lk_acquisition acquisition; /* its `parts` are the existing contenders */
  const lk_joint_kind *kind;
  lk_session_lease *lease;
  size_t refs; /* of the owner, of requests, of callers, and of contenders that
                  will report when their nodes are gone */
  const lk_acquisition_callbacks *callbacks; /* NULL: no reports */
  void *callbacks_arg;
  bool fail_on_expiry;
  bool over;      /* ended or stopped */
  bool unsure;    /* the owner was notified of it */
  bool revoked;   /* the owner was notified of it */
  size_t leaving; /* contenders that will report when their nodes are gone */
  int left_err;   /* why one of the nodes was not deleted, or 0 */
  unsigned lost_nodes; /* nodes lost before the grant */
  lk_joint_member *members;
};

/** The number of bytes that `count` members need (`room` of lk__joint_init). */
size_t lk__joint_room(size_t count);
/** `joint` and `room` must be zeroed, in one allocation that begins with
   `joint`. The last lk__joint_unref() frees it. */
void lk__joint_init(lk_joint_acquisition *joint, const lk_joint_kind *kind,
                    lk_session_lease *lease,
                    const lk_acquisition_callbacks *callbacks, void *arg,
                    void *room, size_t count);
void lk__joint_ref(lk_joint_acquisition *joint);
void lk__joint_unref(lk_joint_acquisition *joint);

/** Create the contender of the next member. NULL: no memory. */
lk_contender *lk__joint_add(lk_joint_acquisition *joint,
                            const lk_contender_config *config,
                            const lk_acquisition_callbacks *callbacks);
/** Stop all contenders; `report_gone`: each calls `gone` when it has ended. */
void lk__joint_stop_members(lk_joint_acquisition *joint, bool report_gone);

/** End the acquisition and notify the owner: lost, or not granted. */
void lk__joint_end(lk_joint_acquisition *joint, int err);
/** A contender lost its node or its session. true: the acquisition begins
    again;
    false: it has to end. */
bool lk__joint_may_begin_again(lk_joint_acquisition *joint, int err);

void lk__joint_notify(lk_joint_acquisition *joint, const lk_notice *notice);
/** Notify the owner of a change of the whole, with its deadline. */
void lk__joint_notify_whole(lk_joint_acquisition *joint, lk_notice_type type);
/** Notify the owner once if the revocation of a contender was requested. No
    effect before the grant. */
void lk__joint_notify_revoked(lk_joint_acquisition *joint);
/** A contender became unsure. */
void lk__joint_member_unsure(lk_joint_acquisition *joint);
/** The lease of a contender was proven: grant, or notify the owner. */
void lk__joint_member_proven(lk_joint_acquisition *joint);
/** The callback `gone` of a contender; `arg` is its lk_joint_member. */
void lk__joint_member_gone(void *arg, int err);

/* Of lk_acquisition_kind. */
void lk__joint_stop(lk_acquisition *a, bool report_gone);
void lk__joint_remove_callbacks(lk_acquisition *a);
void lk__joint_ref_acquisition(lk_acquisition *a);
void lk__joint_unref_acquisition(lk_acquisition *a);

#endif
