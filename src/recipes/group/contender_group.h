/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_GROUP_CONTENDER_GROUP_H
#define LK_RECIPES_GROUP_CONTENDER_GROUP_H

/**
 * @file
 * Several contenders that are held together or not at all: what the acquisition
 * of a multi-lock and that of a semaphore have in common. Each embeds a group
 * as its first member.
 */

#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender.h"

typedef struct lk_contender_group lk_contender_group;

/** The argument of a contender's callbacks. */
typedef struct lk_group_member {
  lk_contender_group *group;
  size_t index;
} lk_group_member;

typedef struct lk_contender_group_kind {
  lk_acquisition_kind acquisition;
  /** Grants the whole if all of it is held. */
  void (*try_grant)(lk_contender_group *g);
  /** The group has ended or was stopped: before and after its contenders are
      stopped. */
  void (*close)(lk_contender_group *g);
  void (*closed)(lk_contender_group *g);
} lk_contender_group_kind;

struct lk_contender_group {
  lk_acquisition acquisition; /* its `parts` are the existing contenders */
  const lk_contender_group_kind *kind;
  lk_session_lease *lease;
  size_t refs; /* of the owner, of requests, of callers, and of contenders that
                  will report when their nodes are gone */
  const lk_acquisition_callbacks *callbacks; /* NULL: no reports */
  void *callbacks_arg;
  bool fail_on_expiry;
  bool over;       /* ended or stopped */
  bool unsure;     /* the owner was notified of it */
  bool revoked;    /* the owner was notified of it */
  size_t leaving;  /* contenders that will report when their nodes are gone */
  int left_err;    /* why one of the nodes was not deleted, or 0 */
  unsigned misses; /* nodes lost before the group was granted */
  lk_group_member *members;
};

/** The number of bytes that `count` members need (`room` of lk__group_init). */
size_t lk__group_room(size_t count);
/** `g` and `room` must be zeroed, in one allocation that begins with `g`. The
    last lk__group_unref() frees it. */
void lk__group_init(lk_contender_group *g, const lk_contender_group_kind *kind,
                    lk_session_lease *lease,
                    const lk_acquisition_callbacks *callbacks, void *arg,
                    void *room, size_t count);
void lk__group_ref(lk_contender_group *g);
void lk__group_unref(lk_contender_group *g);

/** Create the contender of the next member. NULL: no memory. */
lk_contender *lk__group_add(lk_contender_group *g,
                            const lk_contender_config *config,
                            const lk_acquisition_callbacks *callbacks);
/** Stop all contenders; `report_gone`: each calls `gone` when it has ended. */
void lk__group_stop_members(lk_contender_group *g, bool report_gone);

/** End the group and notify the owner: lost, or not granted. */
void lk__group_end(lk_contender_group *g, int err);
/** A contender lost its node or its session. true: the group begins again;
    false: it has to end. */
bool lk__group_may_begin_again(lk_contender_group *g, int err);

void lk__group_notify(lk_contender_group *g, const lk_notice *notice);
/** Notify the owner of a change of the whole group, with its deadline. */
void lk__group_notify_whole(lk_contender_group *g, lk_notice_type type);
/** Notify the owner once if the revocation of a contender was requested. No
    effect before the group is granted. */
void lk__group_notify_revoked(lk_contender_group *g);
/** A contender became unsure. */
void lk__group_member_unsure(lk_contender_group *g);
/** The lease of a contender was proven: grant, or notify the owner. */
void lk__group_member_proven(lk_contender_group *g);
/** The callback `gone` of a contender; `arg` is its lk_group_member. */
void lk__group_member_gone(void *arg, int err);

/* Of lk_acquisition_kind. */
void lk__group_stop(lk_acquisition *a, bool report_gone);
void lk__group_disown(lk_acquisition *a);
void lk__group_ref_acquisition(lk_acquisition *a);
void lk__group_unref_acquisition(lk_acquisition *a);

#endif
