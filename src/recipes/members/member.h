/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_H
#define LK_RECIPES_MEMBERS_MEMBER_H

/**
 * @file
 * A member of a group, and what the files of this folder share.
 */

#include "recipes/common/backoff.h"
#include "recipes/common/retry_pause.h"

#include <latchkey/member.h>
#include <latchkey/subscribe.h>

struct lk_membership {
  lk_mem mem;
  lk_client *client; /* NULL: the client has ended */
  lk_listener listener;
  void (*on_event)(lk_membership *m, const lk_membership_event *event,
                   void *arg);
  void *arg;
  lk_acls *acl;        /* NULL: open */
  lk_acls *parent_acl; /* NULL: `acl` */
  int parent_flags;
  void *data;
  size_t data_len;
  bool wanted;           /* join, and join again */
  bool joined;           /* the node is this session's */
  int64_t czxid;         /* of the node; valid if `joined` */
  bool data_changed;     /* the node may have other data */
  bool name_taken;       /* NAME_TAKEN was reported for the present node */
  int64_t joined_ms;     /* when it has joined */
  lk_subscription *node; /* while a node of this name exists */
  bool creating;         /* the create is under way */
  bool setting;          /* the set is under way */
  bool delete_due;       /* the delete of the own node was refused */
  lk_backoff backoff;
  lk_retry_pause pause;
  size_t refs;    /* of the caller, requests and running callbacks */
  bool freed;     /* by the caller: no event is reported */
  size_t dir_len; /* the length of the directory in `path` */
  char path[];
};

void lk__membership_ref(lk_membership *m);
void lk__membership_unref(lk_membership *m);
/** Report an event, unless the caller has freed the member. */
void lk__membership_notify(lk_membership *m, lk_membership_event event);
/** The node is this session's. */
void lk__membership_joined(lk_membership *m, int64_t czxid);
/** The node is not this session's any more, because of `err`. */
void lk__membership_left(lk_membership *m, int err);
/** Forget the client. The callbacks of requests under way still come. */
void lk__membership_leave_client(lk_membership *m);
/** The client has ended with `err`. */
void lk__membership_end(lk_membership *m, int err);
/** End the subscription to the node. */
void lk__membership_forget_node(lk_membership *m);

#endif
