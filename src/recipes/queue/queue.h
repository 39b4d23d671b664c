/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_QUEUE_H
#define LK_RECIPES_QUEUE_QUEUE_H

/**
 * @file
 * The queue: its lists (LISTING_FIRST and LISTING), and what a list says, which
 * is the position of the own node.
 */

#include <stdbool.h>
#include <stdint.h>

#include <latchkey/types.h>

#include "recipes/names.h"
#include "recipes/queue/contender_states.h"

/* The limit of sequence numbers. Servers take them from an int32 counter of the
   directory. At its end, they give one number to several nodes, or negative
   numbers, so an acquisition with a number near the end fails with
   LK_ERR_SEQ_UNSAFE. */

/** The largest number with which a lock is granted: 2^20 before the end of the
    counter. */
#define LK_SEQUENCE_LIMIT ((int64_t)INT32_MAX - (1 << 20))

/** Whether the number is from 0 to LK_SEQUENCE_LIMIT. */
bool lk__sequence_is_in_range(int64_t number);

/* Which children of a queue's directory belong to another kind of lock or to
   another layout, though they are no contenders of this queue. They make it a
   mixed queue. */

/* When a contender gives up because of the length of its queue: the options
   `once` (a try), `max_queue` and `peek`. */

/** Whether the contender lists the queue before it creates a node: `peek` is
    set, and the length of the queue may refuse the contender. */
bool lk__max_queue_needs_peek(const lk_contender *ct);

/* The position of the own node among the listed names. It depends on their
   numbers, and on which of the listed contenders exclude the own one. */

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
  size_t predecessors;  /**< how many contenders exclude the own one */
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

/** Find the position of the permit node `own` among `names`, the children of
    the permits' directory. Sets `found`, `predecessors` and `foreign` of `out`.
    Children of all kinds count: `predecessors` is the number by which `count`
    exceeds `limit`. `foreign` is a child that looks like a queue node of
    another library. */
void lk__permit_nodes_find_position(lk_queue_position *out, const lk_role *role,
                                    lk_bytes own, const lk_bytes *names,
                                    size_t count, size_t limit);

/** Sort in ascending order, without an allocation. */
void lk__numbers_sort(int64_t *a, size_t n);

/** Request the list of the queue, with a watch if the directory is watched
    instead of the direct predecessor. 0, or why the request was refused. */
int lk__contender_send_list(lk_contender *ct);
/** Begin LISTING_FIRST, in any machine. */
int lk__contender_enter_listing_first(lk_contender *ct);
/** Begin LISTING, in any machine. */
int lk__contender_enter_listing(lk_contender *ct);
/** A list completed with `err`, after the own node was created. `ct` may be
    freed. */
void lk__contender_judge_list(lk_contender *ct, int err, const lk_bytes *names,
                              size_t count);
/** Take the position of the own node from a list: wait, grant or fail. `ct`
    may be freed. */
void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count);
/** The limit of a permit has changed: list again, since the own node may hold
    now. `ct` may be freed. */
void lk__contender_limit_changed(lk_contender *ct);

extern const lk_contender_rules lk__rules_listing_first;
extern const lk_contender_rules lk__rules_listing;

#endif
