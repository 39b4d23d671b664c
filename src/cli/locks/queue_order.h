/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_QUEUE_ORDER_H
#define LK_CLI_LOCKS_QUEUE_ORDER_H

#include <latchkey/types.h>

/** A child of a lock's node that queues for the lock. */
typedef struct cli_contender {
  char *name; /**< below the lock's node */
  int64_t number;
  bool shared; /**< a reader */
  bool lease;  /**< a permit */
  bool beside; /**< its directory's path is the lock's and more: kazoo's */
  bool holds;  /**< see cli_queue_order_locks() */
  bool gone;   /**< left while it was looked at */
  bool hidden; /**< its data may not be read */
  lk_stat stat;
  lk_bytes label; /**< its data, own memory */
} cli_contender;

/** Drop those that are gone to the end, put the others in order of their
    numbers and mark the holders: the first, and readers before any writer.
    Returns how many there are. */
size_t cli_queue_order_locks(cli_contender *all, size_t count);
/** The same for places and permits of a semaphore: the holders are permits.
    Those that the first in the queue waits with are dropped, too. */
size_t cli_queue_order_permits(cli_contender *all, size_t count);

#endif
