/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_WRITE_VERIFICATION_H
#define LK_RECIPES_NODES_WRITE_VERIFICATION_H

#include "recipes/nodes/write_outcome.h"

/**
 * @file
 * The requests after a lost reply of a write. A transaction goes first; its
 * content does not matter. When it is executed, all proposals of the old
 * connection were executed, or never will be. The exception is a session that
 * only the client has given up.
 */

typedef struct lk_write_verification {
  lk_client *client;
  char *path;
  lk_bytes data;                    /**< of the write */
  bool with_parent;                 /**< read the parent, too */
  int64_t seen_zxid;                /**< see lk_lost_write */
  void (*done)(void *arg, int err); /**< err 0: `node` is valid */
  void *arg;

  size_t outstanding; /**< requests without a reply */
  int request_err;    /**< why a request was refused, or 0 */
  int transaction_err;
  lk_node_facts node;
} lk_write_verification;

/** Send the requests. `done` is called in here if none can be sent. */
void lk__write_verification_start(lk_write_verification *v, int64_t end_ms);

#endif
