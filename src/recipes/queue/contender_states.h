/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_STATES_H
#define LK_RECIPES_QUEUE_CONTENDER_STATES_H

/**
 * @file
 * The states of a contender. Each state has rules, which are its legal steps
 * and its handlers, in the file that the comment of the state names.
 */

#include "recipes/queue/lease.h"

#include <latchkey/watch.h>

typedef struct lk_contender lk_contender;

typedef enum lk_contender_state {
  LK_CONTENDER_NO_STEP, /* no state; in rules: an event that must not occur */
  /* contender.c */
  LK_CONTENDER_IDLE,
  LK_CONTENDER_PAUSED,           /* no connection, or a delay before a retry */
  LK_CONTENDER_LISTING_FIRST,    /* queue.c: list requested before any
                                    node is created */
  LK_CONTENDER_CREATING,         /* own_node.c: create and list requested */
  LK_CONTENDER_CREATING_PARENTS, /* own_node.c: creates of directories
                                    requested, then as CREATING */
  LK_CONTENDER_RECOVERING,       /* recovery.c: a transaction and a list are
                                    requested, to see if the create was executed */
  LK_CONTENDER_READING_POSSIBLE_NODES, /* recovery.c: nodes that may be the
                                      own one are read */
  LK_CONTENDER_LISTING,                /* queue.c: list requested */
  /* predecessors.c */
  LK_CONTENDER_SETTING_WATCHES, /* a read of the direct predecessor requested,
                                   and of the own node if it is the next; with
                                   watches */
  LK_CONTENDER_WAITING,         /* for the deletion of the direct predecessor */
  LK_CONTENDER_READING_PREDECESSORS, /* reads of the few predecessors that may
                                        be left */
  /* holding.c */
  LK_CONTENDER_READING_OWN,  /* no predecessors; the token is not known: the own
                                node is read */
  LK_CONTENDER_CHECKING_OWN, /* no predecessors; the lease is too short: the own
                                node is checked */
  LK_CONTENDER_HELD,
  LK_CONTENDER_UNSURE, /* held, but the lease is about to end */
  /* cleanup.c */
  LK_CONTENDER_CLEANING_UP, /* the own node is to be deleted */
  LK_CONTENDER_FINISHED,    /* the own node does not exist */
  LK_CONTENDER_NSTATES,
  /* no state; in rules: an event that changes nothing */
  LK_CONTENDER_STAY = LK_CONTENDER_NSTATES
} lk_contender_state;

typedef enum lk_contender_event {
  LK_CONTENDER_ON_START,        /* the own node does not exist */
  LK_CONTENDER_ON_LIST_FIRST,   /* the own node does not exist, and the queue is
                                   to be listed before a create */
  LK_CONTENDER_ON_OWN_IN_DOUBT, /* the own node may exist */
  LK_CONTENDER_ON_OWN_EXISTS,
  LK_CONTENDER_ON_NO_PARENT,      /* the directory does not exist */
  LK_CONTENDER_ON_POSSIBLE_NODES, /* nodes that may be the own one were listed
                                   */
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
  LK_CONTENDER_ON_PAUSE,        /* connection lost, or server overloaded */
  LK_CONTENDER_ON_LEASE_ENDING, /* the lease deadline is near */
  LK_CONTENDER_ON_LEASE_PROVEN,
  LK_CONTENDER_ON_STOP,          /* cancelled, failed, released */
  LK_CONTENDER_ON_GONE_FOR_GOOD, /* the own node does not exist and will not */
  LK_CONTENDER_NEVENTS
} lk_contender_event;

/** The result of a recovery of the own node. */
typedef enum lk_recovered {
  LK_RECOVERED_MISSING, /**< the create was not and will not be executed */
  LK_RECOVERED_FOUND,   /**< the own node exists, and its path is known */
  LK_RECOVERED_POSSIBLE_NODES, /**< nodes that may be the own one must be read
                                */
  LK_RECOVERED_FAILED          /**< a request completed with `*err` */
} lk_recovered;

/** The rules of a state: its legal steps, and its handlers. */
typedef struct lk_contender_rules {
  /** The next state for each event; LK_CONTENDER_NO_STEP: the event must not
      occur in this state. */
  lk_contender_state next[LK_CONTENDER_NEVENTS];
  lk_lease_need need; /**< need of a contender in this state for the lease */
  /** Begin the state. Returns 0, or why a request was refused; the contender
      then fails. NULL: nothing to do. */
  int (*enter)(lk_contender *ct);
  /** There is a connection, or a pause has ended. NULL: nothing to do. */
  void (*resume)(lk_contender *ct);
  /** A list of the queue completed with `err`. NULL: it is ignored. */
  void (*listed)(lk_contender *ct, int err, const lk_bytes *names,
                 size_t count);
  /** Reads of predecessors or of the own node completed, and no request is
      outstanding. NULL: nothing to do. */
  void (*reads_done)(lk_contender *ct);
  /** An event without a step occurred. NULL: see lk__contender_restart(). */
  void (*restart)(lk_contender *ct);
} lk_contender_rules;

/* clang-format off */
#define LK_ON(event, state) [LK_CONTENDER_ON_##event] = LK_CONTENDER_##state
/* Before the grant a contender can be paused and stopped, and its node can be
 * gone for good together with its session. */
#define LK_ON_ANY_BEFORE_GRANT \
  LK_ON(PAUSE, PAUSED), LK_ON(STOP, CLEANING_UP), LK_ON(GONE_FOR_GOOD, FINISHED)
/* Where the own node was listed it can be found missing, too. */
#define LK_ON_ANY_IN_QUEUE \
  LK_ON_ANY_BEFORE_GRANT, LK_ON(OWN_MISSING, CREATING)
/* clang-format on */

/** What differs between contenders of a queue, whose table is in contender.c,
    and of a single-node lock, whose table and handlers are in single_node.c. */
typedef struct lk_contender_machine {
  const lk_contender_rules *states[LK_CONTENDER_NSTATES];
  /** Whether a waiter has an own node, which the session has to keep. */
  bool waits_with_own_node;
  /** Whether the directory is to be read before a node is created. */
  bool (*reads_first)(const lk_contender *ct);
  /** Request the predecessors: the list of the queue, or the single node. 0, or
      why the request was refused. */
  int (*request_view)(lk_contender *ct);
  /** Whether a successful check of the own path proves that the own node
      exists: the node there cannot be another client's. */
  bool (*check_proves_own)(const lk_contender *ct);
  /** Whether a waiter has a watch whose event will continue it. */
  bool (*has_watch)(const lk_contender *ct);
  /** A watch on another client's node at the own path fired. NULL: there are no
      such watches. */
  void (*on_foreign_node)(lk_contender *ct, lk_event_type type);
} lk_contender_machine;

#endif
