/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TXN_H
#define LK_SIM_MODEL_TXN_H

#include "sim/model/access.h"
#include "sim/model/tree.h"

/** Opcodes that clients cannot send. */
enum { SIM_OP_CREATE_SESSION = -10, SIM_OP_DELETE_CONTAINER = 20 };

/** An operation of a transaction, with all values that were determined when it
    was proposed. */
typedef struct sim_txn_operation {
  int32_t op;               /**< opcode of the request */
  int err;                  /**< error of its result, if the multi failed */
  const char *request_path; /**< the path in the request, for the trace */
  const sim_path *path;     /**< NULL: there is no such path */
  lk_bytes data;
  int32_t counter; /**< create: the counter of the parent after it */
  int32_t version; /**< set, check: after the operation; setACL: aversion */
  const sim_access *access;
  int64_t owner;
  bool container;
  int64_t ttl_ms;
} sim_txn_operation;

typedef struct sim_txn {
  int64_t zxid;
  int64_t time_ms;
  int64_t session; /**< session of the request; 0: the ensemble itself */
  int32_t xid;
  int32_t op;
  int err;
  int32_t timeout_ms;    /**< createSession */
  bool expired;          /**< closeSession: by the leader, not by the client */
  bool moved_in_results; /**< multi: SESSION_MOVED is in its results, and does
                            not close the connection */
  size_t count;
  sim_txn_operation *operations; /**< of a multi; of closeSession, the deletes
                                    of ephemeral nodes */
} sim_txn;

/** Called for each change of the tree. Each may be NULL. */
typedef struct sim_txn_hooks {
  void (*created)(const sim_node *n, void *arg);
  /** `n` is no longer in the tree; its memory is still valid. */
  void (*deleted)(const sim_node *n, int64_t zxid, void *arg);
  void (*data_set)(const sim_node *n, void *arg);
  void (*access_set)(const sim_node *n, int64_t zxid, void *arg);
  void *arg;
} sim_txn_hooks;

/** Apply a transaction. `stats`, unless NULL, receives the stat of the node of
    each operation, for replies. */
void sim_txn_apply(const sim_txn *x, sim_tree *t, const sim_txn_hooks *hooks,
                   lk_stat *stats);

#endif
