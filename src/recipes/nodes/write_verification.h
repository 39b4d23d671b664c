/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_WRITE_VERIFICATION_H
#define LK_RECIPES_NODES_WRITE_VERIFICATION_H

#include "recipes/nodes/write_outcome.h"
#include "recipes/retry.h"

/**
 * @file
 * The verification of a write whose reply was lost: requests that read the
 * node, and their retries. The first request is a transaction, whose content
 * does not matter. When the transaction is executed, each request of the old
 * connection has been executed or will never be. That does not hold for a
 * session that the client has given up and the servers have not. In that case
 * the verification begins when the session has ended.
 */

typedef struct lk_write_verification {
  lk_client *client;
  char *path;
  lk_bytes data; /**< that the write creates or sets */
  const lk_lost_write *write;
  void (*done)(void *arg, int outcome); /**< see lk__write_outcome() */
  void *arg;

  int64_t deadline_ms; /**< deadline of the write */
  lk_retry_pause pause;
  size_t outstanding;  /**< requests without a reply */
  int request_err;     /**< why a request was refused, or 0 */
  int transaction_err; /**< why the transaction was not executed, or 0 */
  lk_node_facts node;  /**< what the requests have shown */
} lk_write_verification;

/** Verify the write until its outcome is known. Lost connections and refusals
    of busy servers lead to retries. `done` is called once; it is called before
    this function returns if no request can be sent. If the outcome is 0, `node`
    holds what was read. */
void lk__write_verification_start(lk_write_verification *v,
                                  int64_t deadline_ms);

#endif
