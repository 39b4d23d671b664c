/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_KINDS_H
#define LK_CONFORMANCE_KINDS_H

#include "support/locks.h"

/**
 * @file
 * The kinds of locks. Each scenario of this folder runs with each kind.
 *
 * In a scenario the own client has a lock of the kind, and the rival, another
 * client, has a lock that cannot be held at the same time. Requests are given
 * as in model_link.log: their names, with " | " where a new write begins.
 */

typedef struct kind {
  const char *name;
  /** Layout and prefix; each scenario sets further options. */
  lk_lock_config config;
  /** Make l->lock, for the own client or the rival. Returns 0 or an error. */
  int (*make)(locker *l, bool is_rival, const lk_lock_config *c);
  /** Directories that exist when a scenario begins, parents first. */
  const char *const *dirs;
  /** Those of them in which locks make their nodes. */
  const char *const *queues;
  /** The data of dirs[1], the semaphore's number of permits; NULL: the kind
      needs none. */
  const char *limit;

  size_t held_nodes;    /**< nodes of the own client while it holds the lock */
  size_t waiting_nodes; /**< nodes of the own client while it waits */
  size_t places;        /**< how many of `waiting_nodes`, from the first on, are
                             deleted after the grant */
  size_t position;      /**< in the queue, as reported to a waiter behind one
                             holder */
  bool containers;      /**< the directories that a lock makes are containers,
                             which the server deletes */
  bool reentrant;       /**< the holder can acquire the lock again */
  bool queued;          /**< a waiter has a node, and a place in a queue */
  bool rival_differs;   /**< the rival's lock is of another kind */

  const char *acquire; /**< requests of an acquire of a free lock */
  const char *cold;    /**< of an acquire when the directories are missing */
  const char *wait;    /**< requests of an acquire of a held lock */
  const char *grant;   /**< requests after the rival's release */
  const char *give_up; /**< requests at the end of the acquire's timeout */
  const char *try;     /**< requests of a try of a held lock */
  const char *release; /**< requests of a release */
  const char *turn;    /**< requests of a release and an acquire while the rival
                            waits */
} kind;

extern const kind kinds[];
extern const size_t kind_count;

#endif
