/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCKS_SEMAPHORE_H
#define LK_RECIPES_LOCKS_SEMAPHORE_H

/**
 * @file
 * The state of an acquisition of permits. Its parts are the queue node, the
 * permit nodes and the limit.
 */

#include <latchkey/semaphore.h>

#include "recipes/locks/joint.h"

typedef struct lk_semaphore_acquisition lk_semaphore_acquisition;

/** What all acquisitions of a handle share. */
typedef struct lk_semaphore_plan {
  lk_contender_config queue_node;
  lk_contender_config permit;   /**< of all permit nodes but the last */
  lk_contender_config counting; /**< of the last permit node, which counts */
  size_t take;                  /**< number of permits of one acquisition */
  int32_t permits;              /**< the number of permits, as configured … */
  int32_t limit;                /**< … or read */
  const char *limit_path; /**< node that holds the limit; NULL: no node does */
  /** In kazoo's layout, the limit in decimal: the data of `limit_path`, which
      is the directory of the permits. In other layouts `limit_text.at` is NULL.
      */
  lk_bytes limit_text;
  bool fail_on_expiry;
  unsigned wasted_writes; /**< how many times in a row it was useless to create
                               the queue node and the permit nodes in one
                               write */
  char limit_digits[12];  /**< `limit_text` of kazoo's layout */
  char paths[];           /**< of queue, permits and limit */
} lk_semaphore_plan;

/** The node that holds the number of permits (permit_limit.c). */
typedef struct lk_permit_limit {
  bool known;             /* the limit was read */
  bool changed;           /* the limit may have changed since it was read */
  unsigned parent_misses; /* creates in a row whose parent was missing */
  bool create_later;      /* pause before the next create */
  lk_watch *watch;        /* NULL: no watch is set or requested */
  lk_timer pause;         /* fires when the next read is due */
} lk_permit_limit;

struct lk_semaphore_acquisition {
  lk_joint_acquisition joint; /* the permit nodes */
  lk_semaphore_plan *plan;
  lk_contender *queue_node; /* NULL: none */
  bool is_first;            /* the queue node is the first of its queue */
  bool had_predecessors;    /* the queue node was not the first at some time */
  bool reported_first;      /* the owner was notified that only permits are
                               missing */
  lk_permit_limit limit;
};

/** The limit was read. */
void lk__semaphore_set_limit(lk_semaphore_acquisition *s, int32_t limit);

#endif
