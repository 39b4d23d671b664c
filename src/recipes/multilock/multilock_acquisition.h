/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H
#define LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H

#include "recipes/joint/joint_acquisition.h"

/**
 * @file
 * The acquisition of several locks: a contender node in each queue, made in one
 * transaction. When one of the contenders has to wait, the nodes of later
 * members are deleted, so that the group always consists of the first members.
 * When that contender is granted, another transaction creates the other nodes.
 */

typedef struct lk_multilock_plan {
  lk_contender_config *members; /**< in the order in which they are taken */
  size_t count;
  bool once; /**< end with LK_ERR_BUSY instead of waiting */
  bool fail_on_expiry;
} lk_multilock_plan;

typedef struct lk_multilock_acquisition {
  lk_joint_acquisition joint;
  lk_multilock_plan *plan;
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

/** NULL: no memory. `plan` must stay until the acquisition was stopped, has
    ended or was lost. */
lk_multilock_acquisition *
lk__multilock_acquisition_new(lk_session_lease *lease, lk_multilock_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

/* ---- for transaction.c -------------------------------------------------- */

/** Delete the nodes of member `from` and of all later members. */
void lk__multilock_drop_from(lk_multilock_acquisition *m, size_t from);
/** End with an error: not granted, or lost. */
void lk__multilock_end(lk_multilock_acquisition *m, int err);
/** Add the contender of the next member. NULL: no memory. */
lk_contender *lk__multilock_add_contender(lk_multilock_acquisition *m);

/* ---- transaction.c ------------------------------------------------------- */

/** Create the missing nodes. No effect while offline, during a transaction or
    while `orphans` > 0. */
void lk__multilock_begin_transaction(lk_multilock_acquisition *m);

#endif
