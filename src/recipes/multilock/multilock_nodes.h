/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_MULTILOCK_NODES_H
#define LK_RECIPES_MULTILOCK_MULTILOCK_NODES_H

/**
 * @file
 * The state of the acquisition of a multi-lock, and how its contender nodes are
 * added and deleted.
 */

#include "recipes/joint/joint_acquisition.h"

/** What all acquisitions of a handle share. */
typedef struct lk_multilock_plan {
  lk_contender_config *members; /**< in the order in which they are acquired */
  size_t count;
  bool once; /**< end with LK_ERR_BUSY instead of waiting */
  bool fail_on_expiry;
} lk_multilock_plan;

typedef struct lk_multilock_acquisition {
  lk_joint_acquisition joint;
  lk_multilock_plan *plan;
  const lk_acquisition_callbacks *member_callbacks; /* for the contenders */
  /* lk__multilock_begin_transaction(): called when no orphan is left. */
  void (*create_missing)(struct lk_multilock_acquisition *m);
  bool listens;        /* `listener` is attached to the client */
  bool suspended;      /* the owner was notified of the lost connection */
  bool in_transaction; /* a transaction is under way */
  bool begin_again;    /* begin again when the transaction has completed */
  bool create_parents; /* create directories before the next transaction */
  size_t first_new;    /* index of the first member of the newest transaction */
  /* Orphans: nodes of unknown name that are being deleted. The nodes of a new
   * transaction would wait for them, so none begins while there are any. */
  size_t orphans;
  unsigned parents_missing; /* transactions in a row with LK_ERR_NO_NODE */
  unsigned session_denied;  /* transactions of this session that a server has
                               refused with LK_ERR_SESSION_EXPIRED, in a row */
  lk_listener listener;
  lk_timer pause; /* fires when the next transaction is due */
} lk_multilock_acquisition;

static inline lk_multilock_acquisition *
lk__multilock_of(lk_joint_acquisition *joint)
{
  return (lk_multilock_acquisition *)(void *)joint;
}
/** Whether another transaction is needed and may be sent: all contenders hold,
    and some members have no contender. */
bool lk__multilock_can_continue(const lk_multilock_acquisition *m);

/** Delete the nodes of member `from` and of all later members. */
void lk__multilock_drop_from(lk_multilock_acquisition *m, size_t from);
/** Delete the nodes of all members. */
static inline void lk__multilock_drop_all(lk_multilock_acquisition *m)
{
  lk__multilock_drop_from(m, 0);
}
/** End the acquisition with `err`, as lk__joint_end(), and leave the client. */
void lk__multilock_end(lk_multilock_acquisition *m, int err);
/** Make the contender of the next member. The caller begins it. NULL: no
 * memory.
 */
lk_contender *lk__multilock_add_contender(lk_multilock_acquisition *m);

/** Detach the listener from the client, and stop the timer. */
void lk__multilock_stop_listening(lk_joint_acquisition *joint);

#endif
