/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_LEASE_USER_H
#define LK_RECIPES_LEASE_LEASE_USER_H

#include "base/safe_list.h"

#include <stddef.h>
#include <stdint.h>

/**
 * @file
 * Users of the session lease. Each user has one node, states its need for the
 * lease, and is notified through a table of callbacks. All users are contenders
 * (src/recipes/queue).
 *
 * Each callback may add and remove users, and may free the client.
 */

typedef struct lk_lease_user lk_lease_user;

/** The need of a user for the session lease. */
typedef enum lk_lease_need {
  LK_LEASE_NOT_NEEDED,
  LK_LEASE_WAITING, /**< its node is in a queue: a grant needs new evidence */
  LK_LEASE_HELD,    /**< its node holds a lock */
  LK_LEASE_UNSURE,  /**< as HELD, and the deadline is near or has passed */
  LK_LEASE_CLEANUP, /**< its node is to be deleted */
  LK_LEASE_NEEDS    /**< the number of values above */
} lk_lease_need;

typedef struct lk_lease_user_kind {
  void (*ref)(lk_lease_user *u);
  void (*unref)(lk_lease_user *u);
  /** There is a connection to a server with a quorum. */
  void (*connected)(lk_lease_user *u);
  /** The connection was lost. */
  void (*suspended)(lk_lease_user *u);
  /** The session has expired, and with it the node. */
  void (*expired)(lk_lease_user *u);
  /** The session has expired, and the client starts no new one. */
  void (*no_new_session)(lk_lease_user *u);
  /** No request is possible any more, because of `err`. */
  void (*closed)(lk_lease_user *u, int err);
  /** HELD or UNSURE: the deadline may have moved, or is near. */
  void (*review)(lk_lease_user *u);
  /** The lease has become long enough for a grant, after lk__lease_await(). */
  void (*renewed)(lk_lease_user *u);
  /** A heartbeat is being sent. Watch or read the node now, if that is due. */
  void (*supervise)(lk_lease_user *u);
  /** HELD or UNSURE: a check of the node completed with `err`. */
  void (*checked)(lk_lease_user *u, int err);
  /** Whether the user waits for the deletion of one node only, which may grant
      its lock. */
  bool (*is_next)(lk_lease_user *u);
  /** The path of the node. `unreadable`: its access list forbids reads. */
  const char *(*node)(lk_lease_user *u, bool *unreadable);
  /** For debug builds: whether the user has not ended and yet waits for no
      reply, event or timer. */
  bool (*is_stuck)(lk_lease_user *u);
} lk_lease_user_kind;

/** Embedded in each user. */
struct lk_lease_user {
  lk_link link;
  const lk_lease_user_kind *kind;
  lk_lease_need need;
  /* Which operation of the newest heartbeat checks the node. */
  uint64_t heartbeat; /**< number of the heartbeat; if that is not the newest
                           one, the newest does not check this node */
  size_t multi;       /**< index of the multi in the heartbeat */
  size_t operation;   /**< index of the operation in the multi */
};

static inline bool lk__lease_user_holds(const lk_lease_user *u)
{
  return u->need == LK_LEASE_HELD || u->need == LK_LEASE_UNSURE;
}

#endif
