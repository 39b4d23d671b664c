/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_WRITE_VERIFICATION_H
#define LK_RECIPES_NODES_WRITE_VERIFICATION_H

#include "recipes/nodes/retry_pause.h"
#include "recipes/nodes/write_outcome.h"

/**
 * @file
 * The verification of a write whose reply was lost: requests that show the
 * node, and what follows if they fail in turn. A transaction goes first; its
 * content does not matter. When it is executed, all proposals of the old
 * connection were executed, or never will be. The exception is a session that
 * only the client has given up: its end is awaited.
 */

typedef struct lk_write_verification {
  lk_client *client;
  char *path;
  lk_bytes data; /**< of the write */
  const lk_lost_write *write;
  void (*done)(void *arg, int outcome); /**< see lk__write_outcome() */
  void *arg;

  int64_t deadline_ms; /**< deadline of the write */
  lk_retry_pause pause;
  size_t outstanding; /**< requests without a reply */
  int request_err;    /**< why a request was refused, or 0 */
  int transaction_err;
  lk_node_facts node;
} lk_write_verification;

/** Verify the write until its outcome is known, over lost connections and
    refusals of busy servers. `done` is called once, in here if no request can
   be sent; after success, `node` holds what was read. */
void lk__write_verification_start(lk_write_verification *v,
                                  int64_t deadline_ms);

#endif
