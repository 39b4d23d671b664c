/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H
#define LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H

#include "recipes/joint/joint_acquisition.h"

/**
 * @file
 * The acquisition of permits: a queue node in `locks`, and a permit node in
 * `leases` for each permit. The last permit node is created after the others.
 * Its contender lists all permit nodes, and waits until their number is within
 * the limit. The permits are granted when all are held and the queue node is
 * the first of its queue.
 */

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
  bool changed;       /* it may have changed since it was read */
  unsigned no_parent; /* creates in a row whose parent was missing */
  bool create_later;  /* the next create comes after a pause */
  lk_watch *watch;    /* NULL: none */
  lk_timer pause;     /* until the next read */
} lk_permit_limit;

typedef struct lk_semaphore_acquisition {
  lk_joint_acquisition joint; /* the permit nodes */
  lk_semaphore_plan *plan;
  lk_contender *queue_node; /* NULL: none */
  bool first;               /* the queue node is the first */
  bool queued;              /* it has had predecessors */
  bool reported_first;      /* the owner was notified of missing permits */
  lk_permit_limit limit;
} lk_semaphore_acquisition;

/** NULL: no memory. `plan` must stay until the acquisition was stopped, has
    ended or was lost. */
lk_semaphore_acquisition *
lk__semaphore_acquisition_new(lk_session_lease *lease, lk_semaphore_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

/* ---- permit_limit.c ------------------------------------------------------ */

/** Read the limit, if a node holds it: 0, or why the request was refused. */
int lk__permit_limit_read(lk_semaphore_acquisition *s);
/** Stop the timer and cancel the watch. */
void lk__permit_limit_forget(lk_semaphore_acquisition *s);
/** `limit.pause` has fired. */
void lk__permit_limit_on_timer(lk_client *c, void *arg);

/* ---- for permit_limit.c and permit_nodes.c ------------------------------- */

/** The limit was read. */
void lk__semaphore_set_limit(lk_semaphore_acquisition *s, int32_t limit);
/** Grant if the queue node is the first and all permit nodes are held. */
void lk__semaphore_try_grant(lk_semaphore_acquisition *s);
/** A contender ended with `err`. */
void lk__semaphore_failed(lk_semaphore_acquisition *s, int err);
/** A node was deleted, by a client or with its session. */
void lk__semaphore_begin_again(lk_semaphore_acquisition *s, int err);
/** Notify once that the queue node is the first and permits are missing. */
void lk__semaphore_notify_first(lk_semaphore_acquisition *s);

#endif
