/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_FOREIGN_NODE_H
#define LK_RECIPES_QUEUE_FOREIGN_NODE_H

/**
 * @file
 * Which children of a queue's directory belong to another kind of lock or to
 * another layout, though they are no contenders of this queue. They make it a
 * mixed queue.
 */

#include <stdbool.h>

#include <latchkey/types.h>

/** Whether `name`, which is no contender's name in this queue, may be a
    contender node, or the directory of permits, of any program's lock or
    semaphore. */
bool lk__name_is_foreign(lk_bytes name);

#endif
