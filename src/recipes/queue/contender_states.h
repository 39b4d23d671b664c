/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_STATES_H
#define LK_RECIPES_QUEUE_CONTENDER_STATES_H

/**
 * @file
 * The states of a contender. Each has its rules, which are its legal steps and
 * its handlers, in the file that its comment names.
 */

#include "recipes/lease/lease_user.h"

#include <latchkey/watch.h>

typedef struct lk_contender lk_contender;

typedef enum lk_contender_state {
  LK_CONTENDER_NO_STEP, /* in rules: an event that must not occur */
  LK_CONTENDER_IDLE,
  LK_CONTENDER_PAUSED, /* no connection, or the server asked for a delay */
  LK_CONTENDER_LISTING_FIRST, /* queue_listing.c: list requested before any
                                 node is created */
  LK_CONTENDER_CREATING,      /* own_node_create.c: create and list requested */
  LK_CONTENDER_CREATING_PARENTS, /* creates of directories, then as CREATING */
  LK_CONTENDER_RECOVERING, /* own_node_recovery.c: a transaction and a list are
                              requested: was the create executed? */
  LK_CONTENDER_READING_CANDIDATES, /* own_node_recovery.c: nodes that may be the
                                      own one are read */
  LK_CONTENDER_LISTING,            /* queue_listing.c: list requested */
  /* waiting.c */
  LK_CONTENDER_SETTING_WATCHES, /* reads of the direct predecessor and of the
                                   own node requested, with watches */
  LK_CONTENDER_WAITING,         /* for the deletion of the direct predecessor */
  LK_CONTENDER_READING_PREDECESSORS, /* predecessor_watch.c: the few that may be
                                        left are read */
  /* grant.c */
  LK_CONTENDER_READING_OWN,  /* no predecessors; the token is not known: the own
                                node is read */
  LK_CONTENDER_CHECKING_OWN, /* no predecessors; the lease is too short: the own
                                node is checked */
  /* holding.c */
  LK_CONTENDER_HELD,
  LK_CONTENDER_UNSURE,      /* held, but the lease is about to end */
  LK_CONTENDER_CLEANING_UP, /* cleanup.c: the own node is to be deleted */
  LK_CONTENDER_FINISHED,    /* the own node does not exist */
  LK_CONTENDER_NSTATES,
  /* in rules: an event that changes nothing */
  LK_CONTENDER_STAY = LK_CONTENDER_NSTATES
} lk_contender_state;

typedef enum lk_contender_event {
  LK_CONTENDER_ON_START,        /* the own node does not exist */
  LK_CONTENDER_ON_LIST_FIRST,   /* the same; list the queue before a create */
  LK_CONTENDER_ON_OWN_IN_DOUBT, /* the own node may exist */
  LK_CONTENDER_ON_OWN_EXISTS,
  LK_CONTENDER_ON_NO_PARENT,  /* the directory does not exist */
  LK_CONTENDER_ON_CANDIDATES, /* nodes that may be the own one were listed */
  LK_CONTENDER_ON_OWN_MISSING,
  LK_CONTENDER_ON_PREDECESSORS, /* there are predecessors */
  LK_CONTENDER_ON_WATCHES_SET,
  LK_CONTENDER_ON_FEW_LEFT,     /* a predecessor was deleted, a few are left */
  LK_CONTENDER_ON_LIST_NEEDED,  /* only a list shows the predecessors */
  LK_CONTENDER_ON_TOKEN_NEEDED, /* no predecessors; the token is not known
                                 */
  LK_CONTENDER_ON_CHECK_NEEDED, /* no predecessors; the lease is too short
                                 */
  LK_CONTENDER_ON_GRANT,
  LK_CONTENDER_ON_PAUSE, /* connection lost, or server overloaded */
  LK_CONTENDER_ON_LEASE_ENDING,
  LK_CONTENDER_ON_LEASE_PROVEN,
  LK_CONTENDER_ON_STOP,     /* cancelled, failed, released */
  LK_CONTENDER_ON_OWN_GONE, /* the own node does not exist and will not */
  LK_CONTENDER_NEVENTS
} lk_contender_event;

/** The result of a recovery of the own node. */
typedef enum lk_recovered {
  LK_RECOVERED_ABSENT,     /**< the create was not and will not be executed */
  LK_RECOVERED_FOUND,      /**< the own node exists, and its path is known */
  LK_RECOVERED_CANDIDATES, /**< nodes that may be the own one must be read */
  LK_RECOVERED_FAILED      /**< a request completed with `*err` */
} lk_recovered;

/** A state: its legal steps, and its handlers. An event without a step holds
    LK_CONTENDER_NO_STEP. */
typedef struct lk_contender_rules {
  lk_contender_state next[LK_CONTENDER_NEVENTS];
  lk_lease_need need; /**< of a contender that waits with its own node */
  /** Begin the state. 0, or why a request was refused; NULL: nothing to do. */
  int (*enter)(lk_contender *ct, lk_contender_state from);
  /** There is a connection, or a pause has ended. NULL: nothing to do. */
  void (*connected)(lk_contender *ct);
  /** A list of the queue completed with `err`. NULL: it is ignored. */
  void (*listed)(lk_contender *ct, int err, const lk_bytes *names,
                 size_t count);
  /** The own node was recovered, or could not be. NULL: the contender continues
      in its queue. */
  void (*recovered)(lk_contender *ct, lk_recovered result, int err);
  /** Reads of predecessors or of the own node completed, and no request is
      outstanding. NULL: nothing to do. */
  void (*all_read)(lk_contender *ct);
  /** A read of the own node completed with `err`. NULL: `all_read` follows. */
  void (*own_read)(lk_contender *ct, int err);
  /** The own node was deleted. NULL: lk__contender_own_missing(). */
  void (*own_deleted)(lk_contender *ct);
  /** An event without a step occurred. NULL: see lk__contender_restart(). */
  void (*restart)(lk_contender *ct);
} lk_contender_rules;

/* clang-format off */
#define LK_ON(event, state) [LK_CONTENDER_ON_##event] = LK_CONTENDER_##state
/* Before the grant a contender can be paused and stopped, and its node can be
 * gone for good together with its session. */
#define LK_ON_ANY_BEFORE_GRANT \
  LK_ON(PAUSE, PAUSED), LK_ON(STOP, CLEANING_UP), LK_ON(OWN_GONE, FINISHED)
/* Where the own node was listed it can be found missing, too. */
#define LK_ON_ANY_IN_QUEUE \
  LK_ON_ANY_BEFORE_GRANT, LK_ON(OWN_MISSING, CREATING)
/* clang-format on */

/** A kind of contender: its states, and what its states do differently. */
typedef struct lk_contender_machine {
  const lk_contender_rules *states[LK_CONTENDER_NSTATES];
  /** Whether a waiter has an own node, which the session has to keep. */
  bool waits_with_own_node;
  /** Whether the directory is to be read before a node is created. */
  bool (*reads_first)(const lk_contender *ct);
  /** Request what shows the predecessors: the list, or the single node. 0, or
      why the request was refused. */
  int (*request_view)(lk_contender *ct);
  /** Whether a successful check of the node at the own path is one of the own
      node. */
  bool (*check_proves_own)(const lk_contender *ct);
  /** Whether a watch will wake a waiter. */
  bool (*has_watch)(const lk_contender *ct);
  /** The watch of another's node at the own path fired. NULL: there is none. */
  void (*on_foreign_node)(lk_contender *ct, lk_event_type type);
} lk_contender_machine;

#endif
