/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TXN_H
#define LK_SIM_MODEL_TXN_H

#include "sim/model/access.h"
#include "sim/model/tree.h"

/** Opcodes of which clients know nothing. */
enum { SIM_OP_CREATE_SESSION = -10, SIM_OP_DELETE_CONTAINER = 20 };

/** One change, with all that was decided when it was proposed. */
typedef struct sim_txn_operation {
  int32_t op;           /**< opcode as it was asked for */
  int err;              /**< in a multi that failed */
  const char *request_path; /**< the path in the request, for the trace */
  const sim_path *path; /**< what it is about; NULL: nothing */
  lk_bytes data;
  int32_t counter; /**< create: the parent's afterwards */
  int32_t version; /**< set, check: afterwards; setACL: of the list */
  const sim_access *access;
  int64_t owner;
  bool container;
  int64_t ttl_ms;
} sim_txn_operation;

typedef struct sim_txn {
  int64_t zxid;
  int64_t time_ms;
  int64_t session; /**< who asked; 0: the ensemble itself */
  int32_t xid;
  int32_t op;
  int err;
  int32_t timeout_ms; /**< createSession */
  bool expired;       /**< closeSession: nobody asked for it */
  size_t count;
  sim_txn_operation
      *operations; /**< parts of a multi; what goes with a session */
} sim_txn;

/** Who wants to know what changes. Each may be NULL. */
typedef struct sim_txn_hooks {
  void (*created)(const sim_node *n, void *arg);
  /** It is gone from the tree; its memory is not. */
  void (*deleted)(const sim_node *n, int64_t zxid, void *arg);
  void (*data_set)(const sim_node *n, void *arg);
  void (*access_set)(const sim_node *n, int64_t zxid, void *arg);
  void *arg;
} sim_txn_hooks;

/** Apply. `stats`, unless NULL: the node of each act after it, for replies. */
void sim_txn_apply(const sim_txn *x, sim_tree *t, const sim_txn_hooks *changes,
                   lk_stat *stats);

#endif
