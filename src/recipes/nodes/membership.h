/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_MEMBERSHIP_H
#define LK_RECIPES_NODES_MEMBERSHIP_H

/**
 * @file
 * The state of a member of a group. The invariants of the simulation read it.
 */

#include <latchkey/member.h>
#include <latchkey/subscribe.h>

#include "recipes/retry.h"

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
  lk_client *client;
  bool over; /**< the client has ended, or nothing is left to do */
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
  lk_member_node node;
  bool busy;    /**< a request is under way; there is at most one */
  bool ordered; /**< the look at the node follows a transaction */
  lk_backoff backoff;
  lk_retry_pause pause;
  size_t refs; /**< of the caller, requests and running callbacks, and one until
                    it is `over` */
  bool freed;  /**< by the caller: no event is reported */
  const char *dir; /**< the directory of the group, behind the path */
  char path[];
};

#endif
