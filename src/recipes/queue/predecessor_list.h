/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_PREDECESSOR_LIST_H
#define LK_RECIPES_QUEUE_PREDECESSOR_LIST_H

/**
 * @file
 * The predecessors of a contender, by the last list.
 */

#include "recipes/queue/queue_position.h"

#include <latchkey/client.h>

/** The contenders that exclude the own one, by the last list. Of a long queue
   only the direct predecessor and the first contender have paths. */
typedef struct lk_predecessors {
  char *block; /**< holds the paths */
  size_t block_size;
  size_t count;
  size_t kept; /**< min(count, LK_KEPT_PREDECESSORS), or 1 of more */
  const char *path[LK_KEPT_PREDECESSORS]; /**< the direct predecessor first */
  const char *head_path; /**< path of the first contender in the queue */
  bool has_rw_writer;  /**< one is the write side of a read-write lock */
  bool in_range;       /**< see sequence_limit.h: all numbers are */
  uint64_t connection; /**< on which the list came */
} lk_predecessors;

/** Keep those of `position`; `dir` is the directory of the queue. false: no
    memory. */
bool lk__predecessors_set(lk_predecessors *p, const lk_mem *mem,
                          const char *dir, uint64_t connection,
                          const lk_queue_position *position);
/** Without paths: of permits only the number matters. */
void lk__predecessors_set_count(lk_predecessors *p, size_t count);
/** The one with path `i` was deleted. */
void lk__predecessors_remove(lk_predecessors *p, size_t i);
/** The direct predecessor is the first contender: no other is left. */
void lk__predecessors_keep_direct(lk_predecessors *p);
void lk__predecessors_free(lk_predecessors *p, const lk_mem *mem);

#endif
