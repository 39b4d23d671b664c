/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_QUEUE_ORDER_H
#define LK_CLI_LOCKS_QUEUE_ORDER_H

#include <latchkey/types.h>

/** A child of a lock's node that queues for the lock. */
typedef struct cli_contender {
  char *name; /**< relative to the lock's node; of a single node, its name */
  int64_t number;
  bool shared;         /**< a reader of a read-write lock */
  bool permit;         /**< a permit of a semaphore, not a place in its queue */
  bool in_kazoo_queue; /**< a child of the queue of kazoo's semaphore, whose
                  path is the lock's path with a suffix */
  bool holds;          /**< set by cli_queue_mark_lock_holders() and
                  cli_queue_mark_permit_holders() */
  bool gone;           /**< deleted while the queue was read */
  bool hidden;         /**< no permission to read it */
  lk_stat stat;
  lk_bytes label; /**< data of the node; own memory */
  bool asked;     /**< was asked to release the lock: LK_REVOKE_MESSAGE has
                  replaced the label */
} cli_contender;

/** Sorts the contenders by number, deleted ones last. Marks the holders: the
    first contender, and all readers before the first writer. Returns the number
    of existing contenders. */
size_t cli_queue_mark_lock_holders(cli_contender *all, size_t count);
/** Sorts the contenders and permits of a semaphore by number, deleted ones
    last. Marks the permits as holders. The first contender in the queue creates
    its permits before it knows whether they are free. Until it holds them, they
    are moved to the end and not counted. Returns the number of existing
    contenders and held permits. */
size_t cli_queue_mark_permit_holders(cli_contender *all, size_t count);

#endif
