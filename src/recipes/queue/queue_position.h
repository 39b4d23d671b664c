/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_POSITION_H
#define LK_RECIPES_QUEUE_QUEUE_POSITION_H

/**
 * @file
 * The position of the own node among the listed names. It depends on their
 * numbers, and on which of the listed contenders exclude the own one.
 */

#include "recipes/names.h"

enum {
  /** Up to this number, predecessors are read one by one. If there are more,
      one list is cheaper. */
  LK_MAX_PREDECESSOR_READS = 8,
  /** Predecessors whose paths are kept: those to be read after the deletion of
      the direct one, and the direct one. */
  LK_KEPT_PREDECESSORS = LK_MAX_PREDECESSOR_READS + 1
};

/** A name of a contender in a list. */
typedef struct lk_queue_entry {
  lk_bytes name; /**< a view into the list */
  int64_t number;
} lk_queue_entry;

/** The position of the own node in the queue, by one list of names. */
typedef struct lk_queue_position {
  bool found;    /**< the own node is listed; if not, nothing else is set */
  bool unsafe;   /**< the own number is out of range, or numbers are not unique:
                    the acquisition must fail */
  bool in_range; /**< all listed numbers are in the range of
                      lk__sequence_is_in_range() */
  bool has_rw_writer; /**< a predecessor is the write side of a read-write lock,
                         whose holder may downgrade to a reader */
  int64_t number;     /**< sequence number of the own node */
  size_t predecessors; /**< how many contenders exclude the own one */
  size_t nearest_count; /**< of entries in `nearest` */
  lk_queue_entry nearest[LK_KEPT_PREDECESSORS]; /**< the nearest predecessors,
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

/** How many listed contenders exclude a new contender of `role`. */
size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count);

/** Sort in ascending order, without an allocation. */
void lk__numbers_sort(int64_t *a, size_t n);

#endif
