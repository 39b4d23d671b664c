/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REJECTED_REQUEST_H
#define LK_PROTO_ENGINE_REJECTED_REQUEST_H

/**
 * @file
 * Leaving a server that has rejected a request as unknown. The server closes
 * the connection itself, but the replies to earlier requests come before.
 */

#include "proto/engine/request_queue.h"

/** The request that the connected server rejected as unknown. The server will
    close the connection. */
typedef struct lk_engine_rejected {
  int32_t op;       /**< opcode of the request; 0: no request was rejected */
  uint64_t end;     /**< lk_request.end of the request */
  int64_t until_ms; /**< when the client ends the connection at the latest */
} lk_engine_rejected;

/** The server rejected `r` as unknown: send nothing more on this connection.
    The connection is ended when the requests before `r` have their replies, or
    after a third of the session timeout. */
void lk__request_rejected(lk_client *c, const lk_request *r);
/** When the connection is ended for this reason; LK_NEVER: no request was
    rejected. */
int64_t lk__rejected_deadline(const lk_client *c);
/** Write to `out` which request the server has rejected: a line for the log. */
void lk__rejected_text(const lk_client *c, char *out, size_t size);

#endif
