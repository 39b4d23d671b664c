/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_ROLES_H
#define LK_RECIPES_QUEUE_ROLES_H

#include "recipes/queue/names.h"

enum {
  /** Up to so many predecessors are read one by one; for more of them one list
     is cheaper. */
  LK_MAX_PREDECESSOR_READS = 8,
  LK_KEPT_PREDECESSORS = LK_MAX_PREDECESSOR_READS + 1
};

/** Numbers beyond it are refused. At the end of the counter servers give one
    number to several nodes, or negative numbers. */
#define LK_SUFFIX_LIMIT ((int64_t)INT32_MAX - (1 << 20))
/** From this number on a warning is logged. */
#define LK_SUFFIX_WARN ((int64_t)1 << 30)
/** With so many predecessors a warning is logged. */
#define LK_LONG_QUEUE 10000

/** What a contender is to the others in its queue. */
typedef struct lk_role {
  const lk_node_kind *mark;     /**< of its nodes */
  const lk_name_format *naming; /**< of all contenders in the queue */
  bool exclusive;               /**< it excludes all others */
  /** Whether an earlier contender of this kind excludes it. */
  bool (*excludes)(const lk_node_kind *other);
  bool counts; /**< of a permit: it is excluded by their number */
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

/** The position of the own node, by one list of names. */
typedef struct lk_queue_position {
  bool found;      /**< the own node is listed; if not, nothing else is set */
  bool unsafe;     /**< numbers are ambiguous: the acquire must end */
  bool in_range;   /**< all suffixes lie within the limit */
  bool writ_ahead; /**< one predecessor may become a reader (Curator's downgrade
                      of a read-write lock) */
  int64_t suffix;  /**< of the own node */
  size_t ahead;    /**< how many exclude the own node */
  size_t near_count;
  lk_queue_entry
      near[LK_KEPT_PREDECESSORS]; /**< the nearest of them, nearest first */
  lk_queue_entry head;            /**< the first of them; set if ahead > 0 */
  lk_bytes stranger; /**< a node of another kind of lock, or another layout;
                        `at` NULL: none */
} lk_queue_position;

/**
 * Find the place of the node `own` in a list of `count` names, in any order.
 * `scratch` has room for `count` numbers.
 */
void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch);

/** The same for a permit, where `limit` nodes may hold: `ahead` is by how many
    there are more. */
void lk__queue_position_of_permit(lk_queue_position *out, const lk_role *role,
                                  lk_bytes own, const lk_bytes *names,
                                  size_t count, size_t limit);

/** How many listed contenders exclude a new contender of `role`. */
size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count);

/** Sort, ascending. */
void lk__numbers_sort(int64_t *a, size_t n);

/** What is known when the last predecessor was deleted. */
typedef struct lk_handoff {
  size_t ahead;         /**< how many predecessors are left */
  bool same_connection; /**< the deletion came on the connection of the list */
  bool own_watched;     /**< a watch on the own node was confirmed on this
                           connection and has not fired */
  bool exclusive;       /**< no other contender may hold at the same time */
  bool writ_ahead;      /**< as in lk_queue_position, by that list */
  bool in_range;        /**< as in lk_queue_position, by that list */
  bool leased;          /**< the lease is long enough for a grant */
} lk_handoff;

/** Rule H: whether the deletion alone permits the grant. Otherwise a list is
    requested. */
bool lk__may_grant_on_deletion(const lk_handoff *h);

#endif
