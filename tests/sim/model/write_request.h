/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_WRITE_REQUEST_H
#define LK_SIM_MODEL_WRITE_REQUEST_H

#include "jute/reader.h"
#include "sim/model/access.h"

/** Stands for the create of a TTL node in a multi with the opcode of a create
    without a TTL. A 3.8 server fails on it, and its reply to the multi has no
    results. */
enum { SIM_OP_CREATE_NO_TTL = 1021 };

/** The session in the writes of the ensemble itself. */
enum { SIM_ENSEMBLE_SESSION = 0 };

/** An operation as the request has it. */
typedef struct sim_operation {
  int32_t op;
  lk_bytes path; /**< any bytes; `at` NULL: the path is null */
  lk_bytes data;
  int32_t flags;
  int64_t ttl_ms; /**< createTTL */
  int32_t version;
  lk_vec acl; /**< of lk_acl */
} sim_operation;

/** A write on its way to the leader. It lives as long as the ensemble. */
typedef struct sim_write_request {
  int64_t session; /**< or SIM_ENSEMBLE_SESSION */
  int32_t xid;
  int32_t op;
  int err; /**< the error of decoding, or 0 */
  int32_t timeout_ms;
  const sim_ids
      *ids;     /**< NULL: the ensemble itself, which has all permissions */
  bool expired; /**< for closeSession: the leader closes the session since it
                   has expired */
  size_t count;
  sim_operation *operations;
} sim_write_request;

/** Decode the body of a write. `chroot` may be "". `scratch` is used for
    decoding and is empty afterwards. `newer`: the servers have
    SERVER_STAT_OF_CREATE_IN_MULTI. */
const sim_write_request *
sim_write_request_read(int64_t session, const sim_ids *ids, const char *chroot,
                       int32_t xid, int32_t op, lk_reader *body, bool newer,
                       lk_arena *memory, lk_arena *scratch);
/** A write with one operation, which the ensemble itself makes. */
const sim_write_request *sim_write_request_new(int64_t session, int32_t op,
                                               const sim_operation *operation,
                                               lk_arena *memory);

#endif
