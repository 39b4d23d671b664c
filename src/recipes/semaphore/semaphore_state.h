/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_SEMAPHORE_STATE_H
#define LK_RECIPES_SEMAPHORE_SEMAPHORE_STATE_H

/**
 * @file
 * The state of an acquisition of permits: what its queue node, its permit nodes
 * and the limit share, and how they report to it.
 */

#include "recipes/joint/joint_acquisition.h"

typedef struct lk_semaphore_acquisition lk_semaphore_acquisition;

/** What all acquisitions of a handle share. */
typedef struct lk_semaphore_plan {
  lk_contender_config queue_node;
  lk_contender_config permit;   /**< of all permit nodes but the last */
  lk_contender_config counting; /**< of the last one */
  size_t take;
  int32_t limit;          /**< the number of permits, as last read */
  const char *limit_path; /**< or NULL */
  /** kazoo's: `limit_path` is the directory of the permits, and its data are
      the limit in decimal, which does not change. `at` NULL: not kazoo's. */
  lk_bytes limit_text;
  bool fail_on_expiry;
  unsigned *failures; /**< in a row, of creating queue node and permit nodes in
                           one write */
} lk_semaphore_plan;

/** The node that holds the number of permits (permit_limit.c). */
typedef struct lk_permit_limit {
  bool known;
  bool changed;           /* it may have changed since it was read */
  unsigned parent_misses; /* creates in a row whose parent was missing */
  bool create_later;      /* the next create comes after a pause */
  lk_watch *watch;        /* NULL: none */
  lk_timer pause;         /* until the next read */
} lk_permit_limit;

/** What permit_limit.c and permit_nodes.c report. */
typedef struct lk_semaphore_reports {
  /** The limit was read. */
  void (*limit_read)(lk_semaphore_acquisition *s, int32_t limit);
  /** All permit nodes may be held: grant if the queue node is the first. */
  void (*permits_held)(lk_semaphore_acquisition *s);
  /** A contender ended with `err`. */
  void (*failed)(lk_semaphore_acquisition *s, int err);
  /** A node was deleted, by a client or with its session. */
  void (*lost)(lk_semaphore_acquisition *s, int err);
  /** The last permit waits. */
  void (*waiting)(lk_semaphore_acquisition *s);
} lk_semaphore_reports;

struct lk_semaphore_acquisition {
  lk_joint_acquisition joint; /* the permit nodes */
  lk_semaphore_plan *plan;
  const lk_semaphore_reports *reports;
  lk_contender *queue_node; /* NULL: none */
  bool is_first;            /* the queue node is the first */
  bool had_predecessors;    /* it has had predecessors */
  bool reported_first;      /* the owner was notified of missing permits */
  lk_permit_limit limit;
};

#endif
