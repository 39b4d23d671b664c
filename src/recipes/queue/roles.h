/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_ROLES_H
#define LK_RECIPES_QUEUE_ROLES_H

#include "recipes/queue/names.h"

enum {
  /** Up to so many names that are left before us are read one by one; more of
      them are cheaper as one list. */
  LK_MAX_PREDECESSOR_READS = 8,
  LK_KEPT_PREDECESSORS = LK_MAX_PREDECESSOR_READS + 1
};

/** Beyond it a queue's counter is too near its end: isolated
    creates then get one suffix for ever, others a negative one. */
#define LK_SUFFIX_LIMIT ((int64_t)INT32_MAX - (1 << 20))
/** From here on it is time to say so. */
#define LK_SUFFIX_WARN ((int64_t)1 << 30)
/** With so many ahead it is time to say so. */
#define LK_LONG_QUEUE 10000

/** What a recipe is to a queue. */
typedef struct lk_role {
  const lk_node_kind *mark;     /**< of the nodes it makes */
  const lk_name_format *naming; /**< of all who contend */
  bool exclusive;               /**< its holder is alone */
  /** Whether one before us with this mark keeps us out. */
  bool (*excludes)(const lk_node_kind *other);
  bool counts; /**< instead: what keeps us out is that there are too many */
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
/** For a role made of a mark of its own. */
bool lk__excludes_writer(const lk_node_kind *other);

/** A contender in a list. */
typedef struct lk_queue_entry {
  lk_bytes name; /**< a view into the list */
  int64_t suffix;
} lk_queue_entry;

/** Where we stand, by one list of names. */
typedef struct lk_queue_position {
  bool found;      /**< our node is there; without it nothing else counts */
  bool unsafe;     /**< the sequence cannot be trusted: leave the queue */
  bool in_range;   /**< all suffixes lie within the limit */
  bool writ_ahead; /**< one ahead may come back as a reader (Curator's
                        downgrade of a read-write lock) */
  int64_t suffix;  /**< ours */
  size_t ahead;    /**< how many exclude us */
  size_t near_count;
  lk_queue_entry
      near[LK_KEPT_PREDECESSORS]; /**< the nearest of them, nearest first */
  lk_queue_entry head;            /**< the first of them; meant if ahead > 0 */
  lk_bytes stranger; /**< of another kind of lock, or another layout; `at`
                          NULL: none */
} lk_queue_position;

/**
 * Find the place of the node `own` in a list of `count` names, in any order.
 * `scratch` has room for `count` numbers.
 */
void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch);

/** The same for a role that counts, where `limit` nodes may hold: `ahead` is
   how many are too many. */
void lk__queue_position_of_permit(lk_queue_position *out, const lk_role *role,
                                  lk_bytes own, const lk_bytes *names,
                                  size_t count, size_t limit);

/** How many in a list keep out one of `role` that comes behind them all. */
size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count);

/** Ascending. */
void lk__numbers_sort(int64_t *a, size_t n);

/** What is known when the last one ahead has gone. */
typedef struct lk_handoff {
  size_t ahead;         /**< how many are left */
  bool same_connection; /**< as that of the list which showed who is ahead */
  bool own_watched; /**< a watch on our node was confirmed on this connection
                         and has not fired */
  bool exclusive;   /**< nobody else may hold with us */
  bool writ_ahead;  /**< as in lk_queue_position, by that list */
  bool in_range;    /**< as in lk_queue_position, by that list */
  bool leased;      /**< the lease is long enough for a grant */
} lk_handoff;

/** Rule H: whether a deletion alone proves that the lock is ours. Otherwise
    ask for a list. */
bool lk__may_grant_on_deletion(const lk_handoff *h);

#endif
