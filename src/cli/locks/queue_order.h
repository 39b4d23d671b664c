/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_QUEUE_ORDER_H
#define LK_CLI_LOCKS_QUEUE_ORDER_H

#include <latchkey/types.h>

/** A child of a lock's node that queues for the lock. */
typedef struct cli_contender {
  char *name; /**< relative to the lock's node */
  int64_t number;
  bool shared;         /**< a reader */
  bool permit;         /**< a permit */
  bool in_kazoo_queue; /**< its directory's path is the lock's path with a
                  suffix: kazoo's queue */
  bool holds;          /**< see cli_queue_order_locks() */
  bool gone;           /**< deleted while the queue was read */
  bool hidden;         /**< its data may not be read */
  lk_stat stat;
  lk_bytes label; /**< its data, own memory */
  bool asked;     /**< to release: LK_REVOKE_MESSAGE has replaced its label */
} cli_contender;

/** Moves deleted contenders to the end, sorts the others by number, and marks
    the holders: the first contender, and readers before the first writer.
    Returns the number of existing contenders. */
size_t cli_queue_order_locks(cli_contender *all, size_t count);
/** The same for a semaphore, whose holders are permits. The permits with which
    the first contender waits are dropped like deleted contenders. */
size_t cli_queue_order_permits(cli_contender *all, size_t count);

#endif
