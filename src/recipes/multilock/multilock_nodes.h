/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_MULTILOCK_NODES_H
#define LK_RECIPES_MULTILOCK_MULTILOCK_NODES_H

/**
 * @file
 * The nodes of the members of a multi-lock: adding and deleting them.
 */

#include "recipes/joint/joint_acquisition.h"

typedef struct lk_multilock_plan {
  lk_contender_config *members; /**< in the order in which they are taken */
  size_t count;
  bool once; /**< end with LK_ERR_BUSY instead of waiting */
  bool fail_on_expiry;
} lk_multilock_plan;

typedef struct lk_multilock_acquisition {
  lk_joint_acquisition joint;
  lk_multilock_plan *plan;
  const lk_acquisition_callbacks *member_callbacks; /* of the contenders */
  /* Create the missing nodes, when no orphan is left. */
  void (*create_missing)(struct lk_multilock_acquisition *m);
  bool listens;        /* to the client */
  bool suspended;      /* the owner was notified of it */
  bool in_transaction; /* a transaction is under way */
  bool begin_again;    /* when it has completed */
  bool create_parents; /* before the next transaction */
  size_t first_new;    /* the first member of the newest transaction */
  size_t orphans;      /* nodes in doubt that are being deleted. No transaction
                          begins before that: its nodes would wait for them */
  unsigned parents_gone; /* transactions in a row with LK_ERR_NO_NODE */
  lk_listener listener;
  lk_timer pause;
} lk_multilock_acquisition;

static inline lk_multilock_acquisition *
lk__multilock_of(lk_joint_acquisition *joint)
{
  return (lk_multilock_acquisition *)(void *)joint;
}
/** No contender waits, and some members have none. */
bool lk__multilock_can_continue(const lk_multilock_acquisition *m);

/** Delete the nodes of member `from` and of all later members. */
void lk__multilock_drop_from(lk_multilock_acquisition *m, size_t from);
/** End with an error: not granted, or lost. */
void lk__multilock_end(lk_multilock_acquisition *m, int err);
/** Add the contender of the next member. NULL: no memory. */
lk_contender *lk__multilock_add_contender(lk_multilock_acquisition *m);

/** Stop listening to the client, and the timer. */
void lk__multilock_stop_listening(lk_joint_acquisition *joint);

#endif
