/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PREDECESSORS_H
#define LK_RECIPES_QUEUE_PREDECESSORS_H

/**
 * @file
 * The predecessors of a contender: those of the last list, without those that
 * were deleted since; and the wait for their deletion, in SETTING_WATCHES,
 * WAITING and READING_PREDECESSORS.
 */

#include <latchkey/client.h>

#include "recipes/queue/contender_states.h"
#include "recipes/queue/queue.h"

/** The largest number of names in a short list, which has some 4 KB. After the
    deletion of the direct predecessor such a list costs less than reads. */
enum { LK_SHORT_LIST = 64 };

/** The contenders that exclude the own one. The paths of the direct predecessor
    and of the first contender are kept, and the others if they may be read. */
typedef struct lk_predecessors {
  char *block; /**< the memory of the paths */
  size_t block_size;
  size_t listed; /**< number of names in the list */
  size_t count;  /**< of predecessors */
  size_t kept;   /**< of elements in `path`: all predecessors, or the direct
                      one */
  const char *path[LK_KEPT_PREDECESSORS]; /**< the direct predecessor first */
  const char *head_path; /**< path of the first contender in the queue; NULL:
                            none, or not known */
  bool has_rw_writer;    /**< see lk_queue_position */
  bool in_range;         /**< see lk_queue_position */
  uint64_t connection;   /**< number of the connection on which the list came */
} lk_predecessors;

/** Take the predecessors of `position` from a list of `listed` names that came
    on `connection`. `dir` is the directory of the queue. false: no memory. */
bool lk__predecessors_set(lk_predecessors *p, const lk_mem *mem,
                          const char *dir, uint64_t connection, size_t listed,
                          const lk_queue_position *position);
/** Take a number of predecessors, and drop all paths. For permits, of which
    only the number matters. */
void lk__predecessors_set_count_only(lk_predecessors *p, size_t count);
void lk__predecessors_free(lk_predecessors *p, const lk_mem *mem);

/* Reading and watching predecessors, and the decision that follows: wait, list
   the queue, or grant. */

extern const lk_contender_rules lk__rules_reading_predecessors;

/* Waiting for the direct predecessor, with watches on it and on the own node.
 */

/** A heartbeat is being sent: watch the own node if it is not watched, so that
    its deletion is noticed while several predecessors are left. */
void lk__waiter_supervise_own(lk_contender *ct);

extern const lk_contender_rules lk__rules_setting_watches;
extern const lk_contender_rules lk__rules_waiting;

#endif
