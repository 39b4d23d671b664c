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
 * as in model_link.log: names, and " | " between two writes.
 */

typedef struct kind {
  const char *name;
  /** Layout, prefix and local queue; each scenario adds its options. */
  lk_lock_config config;
  /** Make l->lock, for the own client or the rival, with this configuration. */
  int (*make)(locker *l, bool is_rival, const lk_lock_config *c);
  /** Directories that exist when a scenario begins, parents first. */
  const char *const *dirs;
  /** Those of them in which locks make their nodes. */
  const char *const *queues;
  /** The data of dirs[1], or NULL. */
  const char *limit;

  size_t held_nodes;    /**< nodes of the own client while it holds the lock */
  size_t waiting_nodes; /**< nodes of the own client while it waits */
  size_t places;        /**< how many of these are deleted after the grant: the
                             first ones */
  size_t position;      /**< reported to a waiter behind one holder */
  bool containers;      /**< the directories that a lock makes are containers,
                             which the server deletes */
  bool counts;          /**< the holder can acquire the lock again */
  bool queued;          /**< a waiter has a node, and a place in a queue */

  const char *acquire; /**< requests of an acquire of a free lock */
  const char *cold;    /**< the same where all but the parent is missing */
  const char *wait;    /**< of an acquire of a held lock */
  const char *grant;   /**< from the holder's release to the own grant */
  const char *give_up; /**< when the wait ends */
  const char *try;     /**< of a try of a held lock */
  const char *release;
} kind;

extern const kind kinds[];
extern const size_t kind_count;

#endif
