/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MEMBERS_MEMBER_H
#define LK_RECIPES_MEMBERS_MEMBER_H

/**
 * @file
 * A member of a group, and what the files of this folder share.
 */

#include "recipes/retry.h"

#include <latchkey/member.h>
#include <latchkey/subscribe.h>

/** What is known of the node on the server. */
typedef struct lk_member_node {
  /** A node of this name may be the own one: a create was sent, and no reply
      has shown that there is none. */
  bool may_exist;
  int64_t session; /**< the session of `may_exist` */
  /** The connection on which the node was seen to be the own one; 0: on none.
      Only on it the node is written or deleted without a look. */
  uint64_t seen_on;
  int64_t czxid; /**< of the own node; valid while the member has joined */
  /** While a node of this name exists: reports its owner and its deletion. */
  lk_subscription *watch;
  bool name_taken;     /**< NAME_TAKEN was reported for the present node */
  bool directory_made; /**< since the last create that was refused for good */
} lk_member_node;

struct lk_membership {
  lk_mem mem;
  /** Sends the next request, if one is due. Called when something was learned.
   */
  void (*step)(lk_membership *m);
  lk_client
      *client; /**< NULL: the client has ended, or nothing is left to do */
  lk_listener listener;
  void (*on_event)(lk_membership *m, const lk_membership_event *event,
                   void *arg);
  void *arg;
  lk_acls *acl;        /**< NULL: open */
  lk_acls *parent_acl; /**< NULL: `acl` */
  int parent_flags;
  void *data;
  size_t data_len;
  bool wanted;       /**< join, and join again */
  bool joined;       /**< JOINED was reported, and LEFT was not */
  bool data_changed; /**< the node may have other data */
  /** When the member has joined, or has last paused after a loss. */
  int64_t undisturbed_since_ms;
  int end_err;       /**< why the client has ended; 0: it has not */
  lk_member_node node;
  bool busy;    /**< a request is under way; there is at most one */
  bool ordered; /**< the look at the node follows a transaction */
  lk_backoff backoff;
  lk_retry_pause pause;
  size_t refs; /**< of the caller, the client, requests and running callbacks */
  bool freed;  /**< by the caller: no event is reported */
  const char *dir; /**< the directory of the group, behind the path */
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
void lk__membership_stop_watch(lk_membership *m);

#endif
