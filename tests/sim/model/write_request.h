/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_WRITE_REQUEST_H
#define LK_SIM_MODEL_WRITE_REQUEST_H

#include "jute/reader.h"
#include "sim/model/access.h"

/** A part of a multi that creates a node with a time to live by its flags, but
    does not say how long: a server fails at it so badly that the multi has no
    results at all. */
enum { SIM_OP_CREATE_NO_TTL = 1021 };

/** One thing that a write wants, as it stood in the request. */
typedef struct sim_operation {
  int32_t op;
  lk_bytes path; /**< anything; `at` NULL is null */
  lk_bytes data;
  int32_t flags;
  int64_t ttl_ms; /**< createTTL */
  int32_t version;
  lk_vec acl; /**< of lk_acl */
} sim_operation;

/** A request for the leader. It lasts as long as the ensemble. */
typedef struct sim_write_request {
  int64_t session; /**< 0: the ensemble itself asks */
  int32_t xid;
  int32_t op;
  int err; /**< it could not be read */
  int32_t timeout_ms;
  const sim_ids *ids; /**< NULL: somebody who may do anything */
  bool expired;       /**< closeSession: the leader wants it */
  size_t count;
  sim_operation *operations;
} sim_write_request;

/** Read the body of a write, whose client has that chroot or ""; `scratch` is
    free afterwards. */
const sim_write_request *
sim_write_request_read(int64_t session, const sim_ids *ids, const char *chroot,
                       int32_t xid, int32_t op, lk_reader *body,
                       lk_arena *memory, lk_arena *scratch);
/** One of our own, with one want. */
const sim_write_request *sim_write_request_new(int64_t session, int32_t op,
                                               const sim_operation *want,
                                               lk_arena *memory);

#endif
