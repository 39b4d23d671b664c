/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_ACQUISITION_H
#define LK_RECIPES_QUEUE_ACQUISITION_H

/**
 * @file
 * An acquisition: what a lock handle runs from its acquire to its release. Most
 * acquisitions consist of one contender (contender.h). A joint acquisition
 * consists of several contenders, which are held together or not at all.
 */

#include <latchkey/client.h>

typedef struct lk_contender lk_contender;
typedef struct lk_acquisition lk_acquisition;

/** What the owner is notified of, besides the grant and the end. The comments
    name the members of lk_notice that are set. */
typedef enum lk_notice_type {
  LK_NOTICE_WAITING,          /**< position, node */
  LK_NOTICE_PLACE_LOST,       /**< err */
  LK_NOTICE_MIXED_QUEUE,      /**< node */
  LK_NOTICE_UNWATCHED,        /**< the own node cannot be read: no watch */
  LK_NOTICE_COUNTER_NEAR_END, /**< see lk__sequence_is_near_end() */
  LK_NOTICE_SUSPENDED,        /**< deadline_ms */
  LK_NOTICE_UNSURE,           /**< deadline_ms */
  LK_NOTICE_LEASE_PROVEN,     /**< deadline_ms */
  LK_NOTICE_REVOKED
} lk_notice_type;

typedef struct lk_notice {
  lk_notice_type type;
  int err;
  size_t position;     /**< the number of predecessors */
  const char *node;    /**< full path, borrowed: of the first contender in the
                          queue (WAITING), or of another lock's node (MIXED) */
  int64_t deadline_ms; /**< the lease deadline */
} lk_notice;

/** The callbacks of the owner. Each of them may free the acquisition, the lock
    and the client. */
typedef struct lk_acquisition_callbacks {
  void (*granted)(void *arg);
  /** The acquisition failed before the grant; it cleans up by itself. */
  void (*ended)(void *arg, int err);
  /** The acquisition was granted and is no longer held. */
  void (*lost)(void *arg, int err);
  void (*notice)(void *arg, const lk_notice *notice);
  /** After stop() with `report_gone`: the own node is deleted. If `err` is not
      0, the own node could not be deleted and stays until the session ends. */
  void (*gone)(void *arg, int err);
} lk_acquisition_callbacks;

/** What differs between the kinds of acquisitions. */
typedef struct lk_acquisition_kind {
  /** Start. `ended` may be invoked before this returns. */
  void (*begin)(lk_acquisition *a);
  /** Cancel or release. No callback is invoked any more, except `gone` if
      `report_gone` is set. */
  void (*stop)(lk_acquisition *a, bool report_gone);
  /** Do not invoke `gone` any more. */
  void (*remove_callbacks)(lk_acquisition *a);
  void (*ref)(lk_acquisition *a);
  void (*unref)(lk_acquisition *a);
} lk_acquisition_kind;

struct lk_acquisition {
  const lk_acquisition_kind *kind;
  /** The acquisition is held if all `parts` are. false: it is not held even
      then, since a contender is still missing or the grant was not given. */
  bool held_with_parts;
  lk_contender **parts; /**< the contenders that must all be held */
  size_t count;         /**< of `parts` */
  uint64_t handoffs;    /**< how many local owners held with this node before */
};

#endif
