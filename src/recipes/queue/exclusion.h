/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_EXCLUSION_H
#define LK_RECIPES_QUEUE_EXCLUSION_H

#include "recipes/queue/names.h"

enum {
  /** Up to this number, predecessors are read one by one. For more of them one
      list is cheaper. */
  LK_MAX_PREDECESSOR_READS = 8,
  LK_KEPT_PREDECESSORS = LK_MAX_PREDECESSOR_READS + 1
};

/** Sequence numbers beyond this limit are refused. At the end of the counter
    servers give one number to several nodes, or negative numbers. */
#define LK_SUFFIX_LIMIT ((int64_t)INT32_MAX - (1 << 20))
/** From this number on a warning is logged. */
#define LK_SUFFIX_WARN ((int64_t)1 << 30)
/** From this number of predecessors on a warning is logged. */
#define LK_LONG_QUEUE 10000

/** The role of a contender in its queue: which others it excludes, and which
    exclude it. */
typedef struct lk_role {
  const lk_node_kind *kind;     /**< of its nodes */
  const lk_name_format *format; /**< of all contenders in the queue */
  bool exclusive;               /**< no other contender may hold with it */
  /** Whether an earlier contender with a node of kind `other` excludes it. */
  bool (*excludes)(const lk_node_kind *other);
  bool counts; /**< a permit: excluded by the number of permit nodes alone */
} lk_role;

extern const lk_role lk__role_mutex;
/** The sides of Curator's read-write lock. */
extern const lk_role lk__role_read;
extern const lk_role lk__role_write;
/** A permit of Curator's semaphore. */
extern const lk_role lk__role_permit;
/** kazoo's locks. */
extern const lk_role lk__role_kazoo_read;
extern const lk_role lk__role_kazoo_write;
/** A permit of kazoo's semaphore. */
extern const lk_role lk__role_kazoo_permit;
/** The shared lock of plain names. */
extern const lk_role lk__role_plain_read;
extern const lk_role lk__role_plain_write;
/** For a role with a kind of its own. */
bool lk__excludes_writer(const lk_node_kind *other);

/** A name of a contender in a list. */
typedef struct lk_queue_entry {
  lk_bytes name; /**< a view into the list */
  int64_t suffix;
} lk_queue_entry;

/** The position of the own node in the queue, by one list of names. */
typedef struct lk_queue_position {
  bool found;    /**< the own node is listed; if not, nothing else is set */
  bool unsafe;   /**< numbers are ambiguous: the acquisition must fail */
  bool in_range; /**< no number exceeds LK_SUFFIX_LIMIT */
  bool has_rw_writer; /**< a predecessor is the write side of a read-write lock,
                         whose holder may downgrade to a reader */
  int64_t suffix;     /**< of the own node */
  size_t predecessors; /**< how many contenders exclude the own node */
  size_t near_count;
  lk_queue_entry near[LK_KEPT_PREDECESSORS]; /**< the nearest predecessors,
                                                nearest first */
  lk_queue_entry head; /**< the first predecessor, if there is one */
  lk_bytes foreign;    /**< a node of another kind of lock, or another layout;
                          `at` NULL: none */
} lk_queue_position;

/**
 * Find the position of the node `own` in a list of `count` names, in any order.
 * `scratch` has room for `count` numbers.
 */
void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch);

/** The same for a permit, where `limit` nodes may hold: `predecessors` is the
    number of nodes above the limit. */
void lk__queue_position_of_permit(lk_queue_position *out, const lk_role *role,
                                  lk_bytes own, const lk_bytes *names,
                                  size_t count, size_t limit);

/** How many listed contenders exclude a new contender of `role`. */
size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count);

/** Sort in ascending order, without an allocation. */
void lk__numbers_sort(int64_t *a, size_t n);

/** State when a predecessor was deleted, see lk__handoff_is_proven(). */
typedef struct lk_handoff {
  size_t predecessors;  /**< how many predecessors are left */
  bool same_connection; /**< the deletion came on the connection of the list */
  bool own_watched;     /**< a watch on the own node was confirmed on this
                           connection and has not fired */
  bool exclusive;       /**< no other contender may hold at the same time */
  bool has_rw_writer;   /**< as in lk_queue_position, by that list */
  bool in_range;        /**< as in lk_queue_position, by that list */
  bool leased;          /**< the lease is long enough for a grant */
} lk_handoff;

/** Rule H: whether the deletion alone permits the grant. Otherwise a list is
    requested. */
bool lk__handoff_is_proven(const lk_handoff *h);

#endif
