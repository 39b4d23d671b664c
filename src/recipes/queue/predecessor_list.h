/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PREDECESSOR_LIST_H
#define LK_RECIPES_QUEUE_PREDECESSOR_LIST_H

/**
 * @file
 * The predecessors of a contender: those of the last list, without those that
 * were deleted since.
 */

#include "recipes/queue/queue_position.h"

#include <latchkey/client.h>

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
/** The predecessor with path `i` was deleted. */
void lk__predecessors_remove(lk_predecessors *p, size_t i);
/** Whether the predecessors that are left are to be read, after the direct one
    was deleted. Otherwise a list costs less. */
bool lk__predecessors_are_worth_reading(const lk_predecessors *p);
/** Remove all but the direct predecessor, which is the first contender. */
void lk__predecessors_keep_direct(lk_predecessors *p);
void lk__predecessors_free(lk_predecessors *p, const lk_mem *mem);

#endif
