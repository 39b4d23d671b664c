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
  LK_NOTICE_COUNTER_NEAR_END, /**< the directory has few sequence numbers
                                   left */
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
  /** After stop() with LK_GONE_REPORT: the own node is deleted. If `err` is not
      0, the own node could not be deleted and stays until the session ends. */
  void (*gone)(void *arg, int err);
} lk_acquisition_callbacks;

/** Whether stop() is followed by the callback `gone`. */
typedef enum lk_gone_report {
  LK_NO_GONE_REPORT,
  LK_GONE_REPORT
} lk_gone_report;

/** What differs between the kinds of acquisitions. */
typedef struct lk_acquisition_kind {
  /** Start. `ended` may be invoked before this returns. */
  void (*begin)(lk_acquisition *a);
  /** Cancel or release. No callback is invoked any more, except `gone`
      with LK_GONE_REPORT. */
  void (*stop)(lk_acquisition *a, lk_gone_report report);
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
};

/* Whether an acquisition is held: the states of its contenders taken together.
 */

/** Whether the acquisition is held, as far as is known. */
bool lk__acquisition_holds(const lk_acquisition *a);
/** Whether one of its contenders is UNSURE. */
bool lk__acquisition_is_unsure(const lk_acquisition *a);
/** The lease deadline: until then no other client can hold. */
int64_t lk__acquisition_deadline(const lk_acquisition *a);
/** Grant the acquisition if all of its contenders are held, none is UNSURE, and
    the lease is long enough. If only the lease is too short, the lease is
    renewed, and LK_NOTICE_LEASE_PROVEN follows. `parts` must be complete.
    Returns whether the acquisition is granted. */
bool lk__acquisition_try_grant(lk_acquisition *a);
/** The fencing token: the largest one of its contenders. */
uint64_t lk__acquisition_token(const lk_acquisition *a);
/** The path of the first contender's node, or NULL while that node does not
    exist. */
const char *lk__acquisition_node_path(const lk_acquisition *a);

#endif
